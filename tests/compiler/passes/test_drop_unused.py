from __future__ import annotations

from openneutron.compiler.passes.drop_unused import drop_unused
from openneutron.machine import targets
from tests.compiler.graphs import Net

TARGET = targets.load("imxrt700")


def test_a_dead_chain_goes_in_one_walk() -> None:
    net = Net(8)
    head = net.conv(net.input, 1)
    net.conv(net.conv(head, 3), 3)
    graph = net.finish(net.conv(head, 1))
    assert drop_unused(graph, TARGET) == 2
    assert [node.output for node in graph.nodes] == [head, graph.outputs[0]]
    assert drop_unused(graph, TARGET) == 0


def test_what_is_read_under_another_name_stays() -> None:
    net = Net(8)
    left, right = net.conv(net.input, 1), net.conv(net.input, 3)
    graph = net.finish(net.conv(net.concat(left, right), 1))
    assert drop_unused(graph, TARGET) == 0 and len(graph.nodes) == 3
