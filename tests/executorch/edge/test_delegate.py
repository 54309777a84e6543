"""The straight way and ExecuTorch's lead to the same bytes; what is not known goes ExecuTorch's way."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from executorch.exir import to_edge_transform_and_lower
from torch import nn
from torch.export import ExportedProgram

from openneutron.executorch import NeutronPartitioner, generate_neutron_compile_spec
from openneutron.executorch.edge import delegate as module
from openneutron.executorch.edge.delegate import delegate, retrace
from openneutron.executorch.fx import operator_name
from openneutron.executorch.lower import layer_calls
from openneutron.executorch.pipeline import quantize
from openneutron.executorch.quantize.choices import Choices

X = (torch.linspace(-1, 1, 3 * 8 * 8).reshape(1, 3, 8, 8),)


class Small(nn.Module):
    """Residual, activations in place, an operator kept whole, a parameter that folding leaves unused."""

    def __init__(self, *, padded: bool = False) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.second, self.head = nn.Conv2d(4, 4, 3, padding="same" if padded else 1), nn.Linear(4, 2)
        self.act, self.last = nn.ReLU(inplace=True), nn.SiLU(inplace=True)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        x = self.act(self.norm(self.first(input)))
        return self.head(self.last(x + self.second(x)).mean((2, 3)))


def quantized(chosen: Choices | None = None, *, padded: bool = False) -> ExportedProgram:
    torch.manual_seed(0)
    return quantize(Small(padded=padded).eval(), X, [X], chosen).program


class Recurrent(nn.Module):
    """A layer that goes through lowering as one call."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.GRU(4, 3, batch_first=True), nn.Linear(3, 2)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(input)[0][:, -1])


def partitioner() -> NeutronPartitioner:
    return NeutronPartitioner(generate_neutron_compile_spec("imxrt700"))


def same_bytes(chosen: Choices | None = None, *, padded: bool = False) -> None:
    one, other = partitioner(), partitioner()
    made = delegate(quantized(chosen, padded=padded), one).manager
    wanted = to_edge_transform_and_lower(quantized(chosen, padded=padded), partitioner=[other])
    assert bytes(made.to_executorch().buffer) == bytes(wanted.to_executorch().buffer)
    assert one.verdicts == other.verdicts
    assert any(verdict.delegated for verdict in one.verdicts)


def test_the_same_bytes_and_verdicts() -> None:
    same_bytes()


def test_with_operators_left_to_the_cpu() -> None:
    same_bytes(Choices(exclude=("second", "head")))


def test_recurrent_layers() -> None:
    x = (torch.linspace(-1, 1, 12).reshape(1, 3, 4),)
    buffers = []
    for lower in (
        lambda program, one: delegate(program, one).manager,
        lambda program, one: to_edge_transform_and_lower(program, partitioner=[one]),
    ):
        torch.manual_seed(0)
        bodies = layer_calls.LayerBodies()
        program = quantize(Recurrent().eval(), x, [x], bodies=bodies).program
        assert any(operator_name(node) == layer_calls.OPERATOR for node in program.graph.nodes)
        keeper = partitioner()  # bodies of layers live as long as it does
        buffers.append(bytes(lower(program, keeper).to_executorch().buffer))
    assert buffers[0] == buffers[1]


def test_what_is_not_known_goes_executorchs_way() -> None:
    same_bytes(padded=True)


def test_the_straight_way_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: object, **options: object) -> None:
        raise AssertionError("retraced")

    monkeypatch.setattr(module, "to_edge_transform_and_lower", never)
    assert delegate(quantized(), partitioner()).retraced == ""


def test_the_operator_that_is_retraced_is_named() -> None:
    assert "aten.conv2d.padding" in delegate(quantized(padded=True), partitioner()).retraced


class Unasked(NeutronPartitioner):
    """As if ExecuTorch did not ask a second time, after partitioning."""

    def ops_to_not_decompose(self, ep: ExportedProgram) -> Any:
        return ([], None) if self._finished else super().ops_to_not_decompose(ep)


def test_leftovers_are_decomposed_without_a_second_question() -> None:
    chosen = Choices(exclude=("second", "head"))
    made = retrace(quantized(chosen), Unasked(generate_neutron_compile_spec("imxrt700")))
    wanted = to_edge_transform_and_lower(quantized(chosen), partitioner=[partitioner()])
    assert bytes(made.to_executorch().buffer) == bytes(wanted.to_executorch().buffer)
