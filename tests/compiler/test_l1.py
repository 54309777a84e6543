from __future__ import annotations

from collections.abc import Callable

import pytest

from openneutron.compiler.l1 import Alias, KernelGraph, RowDemand, State, Value, check
from openneutron.errors import InternalError
from openneutron.microcode.table import ElementType
from tests.compiler.graphs import Net


def _graph() -> KernelGraph:
    net = Net(8)
    return net.finish(net.conv(net.concat(net.conv(net.input, 1), net.conv(net.input, 3)), 1))


def _swap(graph: KernelGraph) -> None:
    graph.nodes.reverse()


def _write_twice(graph: KernelGraph) -> None:
    graph.nodes.append(graph.nodes[-1])


def _alias_of_an_alias(graph: KernelGraph) -> None:
    graph.values[-1].alias = Alias(graph.nodes[0].output, 0, 0, 0, 0)


def _alias_outside(graph: KernelGraph) -> None:
    part = graph.values[graph.nodes[1].output]
    assert part.alias is not None
    part.alias = Alias(part.alias.root, 9, part.alias.plane, part.alias.pitch, part.alias.pixel)


def _unwritten_output(graph: KernelGraph) -> None:
    graph.outputs = [graph.add_value(Value("y", (1, 1, 1, 1), ElementType.INT8))]


def _other_state(graph: KernelGraph) -> None:
    graph.states = [State("h", 0, -1, bytes(3))]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_swap, "before it is written"),
        (_write_twice, "a second time"),
        (_alias_of_an_alias, "aliases an alias"),
        (_alias_outside, "covers bytes to"),
        (_unwritten_output, "never written"),
        (_other_state, "changes its size"),
    ],
)
def test_a_damaged_graph_is_refused(damage: Callable[[KernelGraph], None], message: str) -> None:
    graph = _graph()
    check(graph)
    damage(graph)
    with pytest.raises(InternalError, match=message):
        check(graph)


@pytest.mark.parametrize(("stride", "before", "extent"), [(1, 0, 1), (1, 1, 3), (2, 1, 3), (2, 0, 2)])
def test_a_demand_from_the_bottom_needs_the_same_rows(stride: int, before: int, extent: int) -> None:
    source = 17
    height = (source + 2 * before - extent) // stride + 1
    demand = RowDemand(stride, 1, before, extent)
    from_bottom = demand.from_bottom(height, source)
    for row in range(height):
        low, high = demand.rows(row, row + 1, source)
        below = from_bottom.rows(height - row - 1, height - row, source)
        assert below == (source - high, source - low)


def test_parts_of_channels_lie_in_their_row_and_parts_of_rows_do_not() -> None:
    graph = _graph()
    left = graph.nodes[0].output
    assert graph.in_row(left)
    root = graph.root(left)
    top = graph.add_value(Value("top", (1, 4, 4, 16), ElementType.INT8, alias=Alias(root, 0, 512, 64, 16)))
    assert not graph.in_row(top)


def test_a_copy_is_changed_alone() -> None:
    graph = _graph()
    other = graph.copy()
    other.nodes[0].operands[0] = None
    other.values[0].name = "z"
    other.outputs.append(0)
    assert graph.nodes[0].operands[0] == 0 and graph.values[0].name == "x" and len(graph.outputs) == 1
    assert other.nodes[0].operands[1] is graph.nodes[0].operands[1], "constants are shared"


def test_states_lie_one_after_another_and_count_as_io() -> None:
    graph = _graph()
    plain = graph.io_bytes
    graph.states = [State("a", 0, -1, bytes(5)), State("b", 0, -1, bytes(20))]
    assert graph.state_offsets() == [0, 16]
    assert graph.caller_inputs == [] and plain - graph.values[0].bytes + 25 == graph.io_bytes
