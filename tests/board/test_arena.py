"""The arena against readmes of NXP's SDK, and its rules one by one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from benchmarks.board_networks import BOARD_NETWORKS
from benchmarks.networks import Layers
from benchmarks.published import ARENAS, Arena
from openneutron.board import arena
from openneutron.board.answer import stock_answer
from openneutron.board.arena import OPERATOR_BYTES, Step
from openneutron.litert.graph import Graph
from openneutron.litert.read import read_model
from openneutron.machine import targets


@pytest.mark.parametrize("one", ARENAS, ids=lambda one: f"{one.network}-{one.sdk}")
def test_published_arenas_are_met_within_256_bytes(one: Arena) -> None:
    fetches = one.prefetch_bytes > 0
    answer = stock_answer(BOARD_NETWORKS[one.network](), targets.load("imxrt700"), fetch_constants=fetches, sdk=one.sdk)
    assert abs(answer.arena_bytes - one.arena_bytes) <= 256
    assert answer.prefetch_bytes == one.prefetch_bytes


INTERPRETER_BYTES = 528


def arena_bytes(graph: Graph, steps: Sequence[Step]) -> int:
    return arena.arena_bytes(graph, steps, INTERPRETER_BYTES)


def _chain() -> Graph:
    net = Layers((1, 4, 4, 4))
    y = net.conv(net.conv(net.input, 8, 1), 8, 1)
    return read_model(net.finish(y)).main


def test_a_tensor_that_died_gives_its_place_away() -> None:
    graph = _chain()
    first, second = graph.operators
    steps = [Step((first.inputs[0],), tuple(first.outputs), 1000), Step((second.inputs[0],), tuple(second.outputs))]
    overhead = INTERPRETER_BYTES + 2 * OPERATOR_BYTES
    # Input 64, scratch 1,008 and result 128 at the first step; the second result fits where the scratch was.
    assert arena_bytes(graph, steps) == 64 + 1008 + 128 + overhead


def test_a_convolution_on_the_cpu_keeps_its_multipliers() -> None:
    graph = _chain()
    plain = [Step((op.inputs[0],), tuple(op.outputs)) for op in graph.operators]
    on_cpu = [Step((op.inputs[0],), tuple(op.outputs), operator=at) for at, op in enumerate(graph.operators)]
    assert arena_bytes(graph, on_cpu) == arena_bytes(graph, plain) + 2 * 8 * 8


def test_a_result_without_dimensions_is_one_channel() -> None:
    """Of damaged models; what computes them says so."""
    graph = _chain()
    first = graph.operators[0]
    step = Step((first.inputs[0],), tuple(first.outputs), operator=0)
    graph.tensors[first.outputs[0]].shape = (1, 1, 1, 1)
    flat = arena_bytes(graph, [step])
    graph.tensors[first.outputs[0]].shape = ()
    assert arena_bytes(graph, [step]) == flat
