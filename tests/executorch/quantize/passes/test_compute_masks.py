"""Causal masks are computed from the position, exactly, whatever positions the calibration shows; other tables stay."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import openneutron as on
from openneutron.executorch.capture.export import export
from openneutron.executorch.fx import operator_name
from openneutron.executorch.quantize import NeutronQuantizer
from openneutron.executorch.quantize.passes.compute_masks import compute_masks
from openneutron.executorch.quantize.pt2e import calibrate, convert, prepare


class Rows(nn.Module):
    """Adds rows of a table, looked up by position, to an input."""

    def __init__(self, table: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("table", table)

    def forward(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        return x + self.table[position]


def causal(rows: int, columns: int, ahead: int, allowed: float, forbidden: float) -> torch.Tensor:
    places = torch.arange(columns) <= torch.arange(rows)[:, None] + ahead
    return torch.where(places, allowed, forbidden)


def sample(table: torch.Tensor, position: int, count: int = 1) -> tuple[torch.Tensor, ...]:
    columns = table.shape[-1]
    return torch.zeros(count, columns), torch.arange(position, position + count)


MASKS = {
    "additive": (64, 64, 0, 0.0, -16.0), "factor": (256, 256, 0, 1.0, 0.0), "strict": (64, 64, -1, 0.0, -1.0),
    "further": (64, 80, 3, 0.5, -2.0), "longest": (4096, 40, 0, 1.0, 0.0), "complement": (64, 64, 0, 0.0, 1.0),
}  # fmt: skip


@pytest.mark.parametrize("name", MASKS)
def test_rows_are_exact_also_where_calibration_saw_only_one_position(name: str) -> None:
    table = causal(*MASKS[name])
    rows, _, _, allowed, forbidden = MASKS[name]
    model = Rows(table).eval()
    shown = sample(table, rows // 2 if name == "strict" else 5)
    prepared = prepare(export(model, shown), NeutronQuantizer(activations="int16"), samples=[shown])
    calibrate(prepared, [shown])
    made = convert(prepared)
    (lookup,) = [node for node in made.graph.nodes if operator_name(node) == "aten.index.Tensor"]
    assert lookup.meta["val"].shape[-1] == 1
    for position in {0, 1, 7, 8, 39, 40, rows // 2, rows - 1}:
        found, wanted = made(*sample(table, position))[0], table[position]
        middle = (allowed + forbidden) / 2
        assert torch.equal(found > middle, wanted > middle)
        assert (found - wanted).abs().max() < 1e-3 * max(abs(allowed), abs(forbidden))


@pytest.mark.parametrize(("rows", "columns", "count"), [(4096, 40, 1), (96, 96, 3)])
def test_the_npu_computes_them_for_one_position_and_for_several(rows: int, columns: int, count: int) -> None:
    table = causal(rows, columns, 0, 1.0, 0.0)
    samples = [sample(table, at, count) for at in (0, 20, columns - count)]
    program = on.compile(Rows(table).eval(), samples[0], calibration=samples, activations="int16", quality="plain")
    assert program.report.totals.weight_bytes < 2 * rows + 3 * columns + 1024
    for at in (0, 1, 20, columns - count, rows - count):
        assert torch.equal(program.run(*sample(table, at, count))[0].round(), table[at : at + count])


BAND = causal(64, 64, 0, 1.0, 0.0) - causal(64, 64, -8, 1.0, 0.0)
OTHERS = {
    "short": causal(16, 16, 0, 1.0, 0.0), "band": BAND, "one number": torch.ones(64, 64), "random": torch.rand(64, 64),
    "endless": causal(64, 64, 0, 0.0, -torch.inf), "too long": causal(4097, 40, 0, 1.0, 0.0),
    "all allowed": causal(64, 40, 64, 1.0, 0.0),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_other_tables_stay(name: str) -> None:
    module = export(Rows(OTHERS[name]).eval(), sample(OTHERS[name], 0)).module()
    assert compute_masks(module, lambda node: True) == 0


def test_8_bits_keep_the_table() -> None:
    table = causal(64, 64, 0, 1.0, 0.0)
    module = export(Rows(table).eval(), sample(table, 0)).module()
    before = len(module.graph.nodes)
    assert compute_masks(module, lambda node: False) == 0
    assert compute_masks(module, lambda node: "sub" not in operator_name(node)) == 0
    calls = [operator_name(node) for node in module.graph.nodes if node.op == "call_function"]
    assert "aten.relu.default" not in calls and len(module.graph.nodes) <= before + 2  # two constants that nobody reads
