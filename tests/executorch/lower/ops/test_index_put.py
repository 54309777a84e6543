"""A cache in a buffer, written at a position known only at run time: one graph, updated in place, equal in all spellings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import openneutron as on
from openneutron.cli.main import run
from openneutron.errors import OpenNeutronError
from openneutron.executorch.lower.ops.index_put import MOST_POSITIONS

CONTEXT = 5


class Cached(nn.Module):
    """Attention of one token over the rows written so far."""

    def __init__(self, spelling: str) -> None:
        super().__init__()
        self.spelling, self.project = spelling, nn.Linear(8, 8)
        self.register_buffer("cache", torch.zeros(1, 2, CONTEXT, 4))

    def forward(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        row = self.project(x).view(1, 1, 2, 4).transpose(1, 2)
        if self.spelling == "index_copy_":
            self.cache.index_copy_(2, position, row)
        elif self.spelling == "slice":
            self.cache[:, :, position] = row
        else:
            torch.ops.aten.index_put_(self.cache, [None, None, position], row)
        return (row @ self.cache.transpose(-1, -2)).reshape(1, -1)


@pytest.mark.parametrize(("spelling", "activations"), [("index_copy_", "int8"), ("slice", "int16"), ("put", "int8")])
def test_a_cache_stays_on_the_npu(spelling: str, activations: str) -> None:
    torch.manual_seed(0)
    model = Cached(spelling).eval()
    samples = [(torch.randn(1, 8), torch.tensor([at])) for at in range(CONTEXT)]
    program = on.compile(model, samples[0], calibration=samples, activations=activations)
    left = {node.operator for node in program.report.nodes if not node.delegated}
    assert left == {f"quantized_decomposed.{kind}_per_tensor.default" for kind in ("quantize", "dequantize")}
    for sample in samples[:3]:
        want = model(*sample).detach().numpy()
        assert np.abs(np.asarray(program.run(*sample)[0]) - want).max() < (0.1 if activations == "int8" else 0.03)
    with pytest.raises(OpenNeutronError, match="lies outside its tensor"):
        program.run(samples[3][0], torch.tensor([CONTEXT]))
    want = model(*samples[3]).detach().numpy()
    assert np.abs(np.asarray(program.run(*samples[3])[0]) - want).max() < (0.1 if activations == "int8" else 0.03)


class Rows(nn.Module):
    """A cache of which a call writes as many rows as it gets positions."""

    def __init__(self, size: int = 6) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(2, size, 4))

    def forward(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        self.cache.index_copy_(1, positions, torch.relu(x))
        return self.cache * 2


@pytest.mark.parametrize("kind", [torch.int64, torch.int32])
def test_rows_at_several_positions_are_written_in_their_order(kind: torch.dtype, tmp_path: Path) -> None:
    model = Rows()
    x = torch.tensor([[0.5, 1.0, 1.5], [2.0, 2.5, 3.0]]).unsqueeze(-1).expand(2, 3, 4).contiguous()
    places = torch.tensor([4, 0, 4])
    if kind is torch.int32:
        model.forward = lambda x, positions: Rows.forward(model, x, positions.long())  # type: ignore[method-assign]
    program = on.compile(model, (x, places.to(kind)), calibration=[(x, places.to(kind))], dump_intermediates=True)
    assert program.report.totals.neutron_graphs == 1
    assert not [node for node in program.report.nodes if not node.delegated and "index_put" in node.operator]
    found = np.asarray(program.run(x, places.to(kind))[0])
    want = np.zeros((2, 6, 4), np.float32)
    want[:, [0, 4]] = 2 * x.numpy()[:, [1, 2]]  # of two rows for position 4 the later one
    assert np.abs(found - want).max() < 0.05
    with pytest.raises(OpenNeutronError, match="lies outside its tensor"):
        program.run(2 * x, torch.tensor([1, 2, 6]).to(kind))
    assert np.array_equal(np.asarray(program.run(x, places.to(kind))[0]), found)  # nothing was written
    program.save(tmp_path / "rows.pte")
    assert run(["certify", str(tmp_path / "rows.pte")]) == 0


def test_more_rows_than_calls_may_have_stay_on_the_cpu() -> None:
    count = MOST_POSITIONS + 1
    samples = [(torch.randn(2, count, 4), torch.arange(count))]
    program = on.compile(Rows(count), samples[0], calibration=samples)
    (reason,) = {node.reason for node in program.report.nodes if node.operator == "aten.index_put.default"}
    assert f"{count} positions are given" in reason
