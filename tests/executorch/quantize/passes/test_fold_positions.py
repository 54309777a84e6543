"""What depends on a position alone is a table: decoders as others write them are one graph with nothing beside its border."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import openneutron as on
from openneutron.errors import OpenNeutronError, UnsupportedError
from openneutron.executorch.capture.export import export
from openneutron.executorch.fx import operator_name
from openneutron.executorch.quantize.passes.fold_positions import fold_positions
from openneutron.executorch.quantize.passes.replace.replace_complex import replace_complex
from tests import foreign_decoders as foreign

# The others differ from these in the graph alone.
COMPILED = (
    "angles of a position, compared columns, SDPA",
    pytest.param("distances (ALiBi) with minus infinity", marks=pytest.mark.full),
    pytest.param("complex numbers, endless mask", marks=pytest.mark.full),
)


def same_calls(model: nn.Module, rewritten: torch.fx.GraphModule, calls: list[tuple[torch.Tensor, ...]]) -> bool:
    with torch.no_grad():
        return all(torch.allclose(model(*one), rewritten(*one), atol=1e-5) for one in calls)


@pytest.mark.parametrize("name", foreign.WAYS)
def test_masks_and_rotations_become_tables(name: str) -> None:
    model, calls = foreign.seeded(lambda: foreign.Decoder(foreign.WAYS[name])), foreign.calls()
    module = export(model, calls[0]).module()
    way = foreign.WAYS[name]
    tables = fold_positions(module)
    assert (tables > 0) == (way.mask != "endless")  # whose rows are looked up as they are
    assert (replace_complex(module) > 0) == (way.rotation == "complex")
    module.graph.eliminate_dead_code()
    module.recompile()
    left = {operator_name(node) for node in module.graph.nodes}
    assert not left & {"aten.cos.default", "aten.le.Tensor", "aten.view_as_complex.default"}
    assert same_calls(copy.deepcopy(model), module, calls)


@pytest.mark.parametrize("name", COMPILED)
def test_a_decoder_is_one_graph(name: str) -> None:
    model, calls = foreign.seeded(lambda: foreign.Decoder(foreign.WAYS[name])), foreign.calls()
    program = on.compile(copy.deepcopy(model), calls[0], calibration=calls, quality="plain", activations="int16")
    assert program.report.totals.neutron_graphs == 1
    left = [one.operator for one in program.verdicts if not one.delegated]
    assert [one for one in left if not one.startswith("quantized_decomposed.")] == []
    with torch.no_grad():
        for one in calls:
            wanted, found = model(*one), program.run(*one)[0]
            assert (wanted - found).square().mean() < 1e-3 * wanted.square().mean()
    with pytest.raises(OpenNeutronError, match="outside its tensor"):
        program.run(calls[0][0], torch.tensor([foreign.CONTEXT]))


def test_methods_that_round_first_leave_attention_on_the_npu() -> None:
    """A mask of minus infinity is seen by the check before them too, where it is not rewritten yet."""
    way = foreign.Way("tables", "endless", "index_copy", "sdpa", 1)
    model, calls = foreign.seeded(lambda: foreign.Decoder(way)), foreign.calls()
    given = {"activations": "int16", "weights": "int4", "adaround": True, "quality": "plain"}
    report = on.compile(model, calls[0], calibration=calls, **given).report
    assert report.totals.neutron_graphs == 1 and "5 layers rounded" in " ".join(report.notes)


def test_a_cache_that_is_shifted_has_16_bits_by_default() -> None:
    model, calls = foreign.seeded(foreign.Shifting), foreign.calls(positions=False)
    program = on.compile(model, calls[0], calibration=calls)
    assert program.report.totals.neutron_graphs == 1
    assert (program.report.outputs[0].sqnr or 0) > 30


def test_a_position_taken_out_as_a_number_has_a_sentence() -> None:
    calls = foreign.calls()
    with pytest.raises(UnsupportedError, match="takes out of a tensor as a number") as caught:
        on.compile(foreign.seeded(foreign.ByNumber), calls[0], calibration=calls)
    assert "cache[:, position] = row" in str(caught.value)


class Rows(nn.Module):
    """A mask for several positions, with the positions in another place than the first."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.randn(12, 3))

    def forward(self, x: torch.Tensor, position: torch.Tensor) -> tuple[torch.Tensor, ...]:
        allowed = torch.arange(5)[:, None] * 2 <= position[None, :]
        mixed = position.cumsum(0).float()  # of all positions together: no table
        return x + torch.where(allowed, 0.5, -2.0), x[0, 0] * self.table[position], x[0] * mixed


def test_several_positions_are_told_apart() -> None:
    model, position, x = Rows(), torch.tensor([3, 0, 11, 7]), torch.randn(5, 4)
    module = export(model, (x, position)).module()
    assert fold_positions(module) == 1
    module.graph.eliminate_dead_code()
    module.recompile()
    for one in (position, torch.tensor([1, 2, 3, 4]), torch.tensor([11, 11, 0, 5])):
        assert all(map(torch.allclose, model(x, one), module(x, one)))
