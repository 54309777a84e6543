"""Recurrent layers go through ExecuTorch as one call each, and are compiled as their steps."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest
import torch
from executorch.exir import to_edge
from torch import nn
from torch.export import ExportedProgram

from openneutron.errors import InternalError
from openneutron.executorch.fx import is_quantize, operator_name
from openneutron.executorch.lower import layer_calls
from openneutron.executorch.lower.layer_calls import LayerBodies
from openneutron.executorch.lower.lowering import Lowering
from openneutron.executorch.partition.partitioner import NeutronPartitioner
from openneutron.executorch.partition.passes.decompose_leftovers import decompose_leftovers
from openneutron.executorch.partition.passes.keep_layers_whole import keep_layers_whole
from openneutron.executorch.partition.passes.split_dequantize import split_dequantize
from openneutron.executorch.pipeline import build, quantize
from openneutron.executorch.quantize.choices import Choices
from openneutron.executorch.upstream.edge_names import forget_same_nodes
from openneutron.executorch.upstream.names import forget_fake_calls
from openneutron.litert.read import read_model
from tests.executorch.harness import check

STEPS = 2


class Layer(nn.Module):
    """A layer whose states are returned with the sequence."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor, *states: torch.Tensor) -> tuple[torch.Tensor, ...]:
        given = (states[0] if len(states) == 1 else states,) if states else ()
        y, last = self.layer(x, *given)
        return (y, *last) if isinstance(last, tuple) else (y, last)


def case(layer: nn.Module, *states: tuple[int, ...], shape: tuple[int, ...] = (1, STEPS, 6)) -> Callable[[], tuple]:
    return lambda: (Layer(layer), (torch.randn(shape), *(torch.randn(size) for size in states)))


CASES = {
    "both directions": case(nn.GRU(6, 5, batch_first=True, bidirectional=True)),
    "two layers, time first": case(nn.LSTM(6, 5, 2), shape=(STEPS, 1, 6)),
    "from a state": case(nn.GRU(6, 5, batch_first=True), (1, 1, 5)),
    "projection": case(nn.LSTM(6, 5, batch_first=True, proj_size=4)),
    "plain": case(nn.RNN(6, 5, batch_first=True)),
}


def program_of(seed: int = 0) -> tuple[ExportedProgram, torch.Tensor]:
    torch.manual_seed(seed)
    x = torch.randn(1, STEPS, 6)
    return split_dequantize(quantize(Layer(nn.GRU(6, 5, batch_first=True)).eval(), (x,), [(x,)]).program), x


def calls(program: ExportedProgram) -> list[str]:
    return [operator_name(node) for node in program.graph.nodes if node.op == "call_function"]


@pytest.mark.parametrize("activations", ["int8", "int16"])
def test_every_kind_of_layer_is_one_call_and_exact(activations: str) -> None:
    torch.manual_seed(0)
    made = check(CASES, activations=activations)
    operators = [node.operator for node in made.built.report.nodes if node.code != "border"]
    assert operators == [layer_calls.OPERATOR] * len(CASES)
    assert "FULLY_CONNECTED" in made.codes and "TANH" in made.codes


def test_the_model_is_the_one_that_its_operators_make(monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled() -> tuple[list[str], bytes]:
        torch.manual_seed(0)
        x = torch.randn(1, STEPS, 6)
        (partition,) = build(Layer(nn.LSTM(6, 5, batch_first=True)).eval(), (x,), calibration=[(x,)]).partitions
        made = read_model(partition.converted).main
        constants = [made.tensors[index].data for index in made.operators[0].inputs[-3:]]
        return [op.code for op in read_model(partition.litert).main.operators], b"".join(map(bytes, constants[1:]))

    together = compiled()
    monkeypatch.setattr(NeutronPartitioner, "_keeps_layers", lambda self: False)
    assert compiled() == together


def test_a_layer_is_lowered_once_to_be_judged_and_once_in_its_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered: list[str] = []
    inline = Lowering.inline
    monkeypatch.setattr(
        Lowering, "inline", lambda self, owner, *rest: (lowered.append(owner.name), inline(self, owner, *rest))
    )
    torch.manual_seed(0)
    x = torch.randn(1, STEPS, 6)
    made = build(Layer(nn.GRU(6, 5, batch_first=True)).eval(), (x,), calibration=[(x,)])
    assert len(made.partitions) == 1 and len(lowered) == 2


def test_the_call_computes_what_its_operators_do_and_can_be_put_back() -> None:
    program, x = program_of()
    wanted = program.module()(x)
    bodies = LayerBodies()
    one = keep_layers_whole(program, lambda *_: True, bodies)
    assert calls(one).count(layer_calls.OPERATOR) == 1 and len(calls(one)) < 10 < len(calls(program))
    back = keep_layers_whole(program, lambda *_: False, bodies)
    assert layer_calls.OPERATOR not in calls(back) and len(calls(back)) >= len(calls(program))
    for made in (one, back):
        assert all(map(torch.equal, made.module()(x), wanted))


@pytest.mark.parametrize("per_channel", [False, True])
def test_a_module_is_exported_with_one_call(per_channel: bool) -> None:
    torch.manual_seed(0)
    x = torch.randn(1, STEPS, 6)
    chosen = Choices(per_channel=per_channel)
    bodies = LayerBodies()
    made = quantize(Layer(nn.GRU(6, 5, batch_first=True)).eval(), (x,), [(x,)], chosen, bodies=bodies)
    assert calls(made.program).count(layer_calls.OPERATOR) == 1
    back = keep_layers_whole(made.program, lambda *_: False, bodies)
    assert layer_calls.OPERATOR not in calls(back)
    for program in (made.program, back):
        assert all(map(torch.equal, program.module()(x), made.module(x)))


def test_what_stays_on_the_cpu_becomes_operators_that_it_has() -> None:
    program, x = program_of()
    bodies = LayerBodies()
    edge = to_edge(keep_layers_whole(program, lambda *_: True, bodies)).exported_program()
    assert layer_calls.OPERATOR in calls(edge)
    assert decompose_leftovers(edge.graph_module, lambda node: False) == 1
    assert layer_calls.OPERATOR not in calls(edge) and "aten.linear.default" not in calls(edge)
    assert all(map(torch.equal, edge.module()(x), program.module()(x)))


@pytest.mark.parametrize("options", [{"operators_not_to_delegate": ("aten.tanh.default",)}, {"placement": "fastest"}])
def test_whoever_looks_inside_a_layer_finds_its_operators(options: dict[str, object]) -> None:
    torch.manual_seed(0)
    x = torch.randn(1, STEPS, 6)
    built = build(Layer(nn.RNN(6, 5, batch_first=True)).eval(), (x,), calibration=[(x,)], **options)
    found = [node.operator for node in built.report.nodes]
    assert layer_calls.OPERATOR not in found and found.count("aten.tanh.default") == STEPS


def test_a_layer_that_is_read_in_float_is_left_alone() -> None:
    class Read(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.RNN(6, 5, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.erf(self.layer(x)[0])

    x = torch.randn(1, STEPS, 6)
    program = quantize(Read().eval(), (x,), [(x,)]).program
    for node in program.graph.nodes:  # as if erf's reader took the layer's result before it is stored
        if operator_name(node) == "aten.erf.default":
            node.replace_input_with(node.args[0], node.args[0].args[0].args[0])
    program.graph_module.recompile()
    assert keep_layers_whole(program, lambda *_: True, LayerBodies()) is program


def test_a_layer_with_a_scale_that_is_no_number_is_left_to_the_check_of_all_scales() -> None:
    program, _ = program_of()
    inside = [node for node in program.graph.nodes if is_quantize(node)][3]
    inside.args = (inside.args[0], float("nan"), *inside.args[2:])
    assert layer_calls.OPERATOR not in calls(keep_layers_whole(program, lambda *_: True, LayerBodies()))


def test_bodies_live_as_long_as_the_lowered_program() -> None:
    before = set(layer_calls._named)
    x = torch.randn(1, STEPS, 6)
    built = build(Layer(nn.RNN(6, 5, batch_first=True)).eval(), (x,), calibration=[(x,)])
    gc.collect()
    assert set(layer_calls._named) - before, "the delegated subgraph can still be computed"
    del built
    # Both caches are emptied every few compiles only.
    forget_fake_calls()
    forget_same_nodes()
    gc.collect()
    assert set(layer_calls._named) <= before


def test_a_call_whose_compile_is_over_says_so() -> None:
    program, x = program_of()
    one = keep_layers_whole(program, lambda *_: True, LayerBodies()).module()
    with pytest.raises(InternalError, match="the compile that made it has ended"):
        one(x)
