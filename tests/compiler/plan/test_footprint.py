from __future__ import annotations

from openneutron.compiler.l1 import KernelGraph
from openneutron.compiler.plan.footprint import Footprint
from openneutron.compiler.plan.segments import Structure, segment_of
from tests.compiler.graphs import Net


def _held(graph: KernelGraph, first: int, last: int, rows: int) -> Footprint:
    """The footprint of a finished segment, grown node by node from its end."""
    structure = Structure.of(graph)
    streams = segment_of(structure, first, last, rows).streams
    row_bytes = [value.row_bytes for value in graph.values]
    held = Footprint(structure, None, begun=last)
    for at in range(last - 1, first - 1, -1):
        held.hold_ring(streams, graph.nodes[at].output, row_bytes)
    return held


def test_rings_that_keep_rows_add_up() -> None:
    net = Net(16)
    graph = net.finish(net.conv(net.conv(net.conv(net.input, 3), 3), 3))
    assert _held(graph, 0, 2, 1).peak(0) == (3 + 3) * 4 * 8  # three rows of each


def test_rows_that_pass_by_are_held_only_from_maker_to_reader() -> None:
    net = Net(16)
    value = net.input
    for _ in range(4):
        value = net.conv(value, 1)
    held = _held(net.finish(value), 0, 3, 1)
    assert held.steady == 0
    assert held.peak(0) == 2 * 4 * 8  # a call reads one row and makes one


def test_rows_that_are_overwritten_in_place_take_nothing() -> None:
    net = Net(16)
    left, right = net.conv(net.input, 1), net.conv(net.input, 1)
    graph = net.finish(net.conv(net.join(left, right, in_place=(0, 1)), 3))
    assert _held(graph, 0, 3, 1).peak(0) == (3 + 1) * 4 * 8  # three rows of the sum, one of the left side


def test_parts_of_one_value_share_a_ring() -> None:
    net = Net(16)
    graph = net.finish(net.conv(net.concat(net.conv(net.input, 1), net.conv(net.input, 3)), 3))
    held = _held(graph, 0, 2, 1)
    assert held.peak(0) == 3 * 4 * 16
    assert held.begun == 0, "no segment can begin between the nodes that fill it"


def test_workspaces_count_at_their_call_and_constants_beyond_the_room() -> None:
    held = Footprint(Structure.of(KernelGraph()), None, begun=0)
    held.hold_workspace(0, 100)
    held.hold_workspace(1, 40)
    assert held.peak(0) == 100
    held.constants = 500
    assert (held.peak(0), held.peak(450), held.peak(600)) == (600, 150, 100)
