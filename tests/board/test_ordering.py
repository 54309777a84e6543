"""Operators that free memory run as soon as they can; all others in the order of the file."""

from __future__ import annotations

from benchmarks.networks import Layers
from openneutron.board.ordering import order_operators
from openneutron.board.plan import stock_plan
from openneutron.litert.read import read_model
from openneutron.machine import targets

MCXN = targets.load("mcxn94x")


def _two_heads() -> bytes:
    net = Layers((1, 16, 16, 16))
    x = net.conv(net.input, 32, 1)
    small = net.conv(x, 16, 1)
    large = net.conv(x, 64, 1)
    large = net.conv(large, 64, 3)
    return net.finish(net.conv(small, 8, 1), net.conv(large, 8, 1))


def test_a_head_runs_before_the_larger_branch_and_its_operand_takes_no_memory_there() -> None:
    graph = read_model(_two_heads()).main
    first, small, large, larger, head, other = graph.operators
    assert order_operators(graph) == [first, small, head, large, larger, other]
    assert stock_plan(graph, MCXN).tasks.scratch_bytes == 16 * 16 * (64 + 64)


def test_chains_and_equal_sizes_keep_their_order() -> None:
    net = Layers((1, 8, 8, 16))
    left = net.conv(net.input, 16, 1)
    right = net.conv(net.input, 16, 1)
    last = net.add(net.conv(left, 16, 1), net.conv(right, 16, 1))
    graph = read_model(net.finish(net.conv(last, 4, 1))).main
    assert order_operators(graph) == graph.operators


def test_every_operator_runs_once_and_behind_its_operands() -> None:
    graph = read_model(_two_heads()).main
    found = order_operators(graph)
    assert sorted(map(id, found)) == sorted(map(id, graph.operators))
    known = {*graph.inputs, *(at for at, tensor in enumerate(graph.tensors) if tensor.data is not None)}
    for op in found:
        assert known.issuperset(one for one in op.inputs if one >= 0)
        known.update(op.outputs)
