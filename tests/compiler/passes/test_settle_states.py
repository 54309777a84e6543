from __future__ import annotations

from openneutron.compiler.l1 import KernelGraph, State, Value, check
from openneutron.compiler.passes.settle_states import settle_states
from openneutron.machine import targets
from openneutron.microcode.table import ElementType
from tests.compiler.graphs import Net

TARGET = targets.load("imxrt700")


def _graph(late: bool) -> KernelGraph:
    """A state `h` that is updated from itself; with `late` it is read once more after the update."""
    net = Net(8)
    after = net.conv(net.input, 3)
    result = net.join(net.input if late else after, after)
    graph = net.finish(result, after)
    graph.states = [State("h", 0, 1, bytes(graph.values[net.input].bytes))]
    return graph


def test_what_is_written_too_early_is_copied_at_the_end() -> None:
    graph = _graph(late=True)
    early = graph.outputs[1]
    assert settle_states(graph, TARGET) == 1
    check(graph)
    assert graph.nodes[-1].output == graph.outputs[1] != early and graph.nodes[-1].inputs() == [early]
    assert graph.nodes[-1].demand is None, "no stream may write a row that another call still reads"


def test_reading_and_writing_in_one_call_is_too_early() -> None:
    graph = _graph(late=False)
    assert settle_states(graph, TARGET) == 1 and len(graph.nodes) == 3


def test_a_state_that_nothing_reads_is_written_where_it_is_made() -> None:
    net = Net(8)
    state = net.graph.add_value(Value("h", (1, 8, 4, 8), ElementType.INT8))
    graph = net.finish(net.conv(net.input, 3))
    graph.inputs.append(state)
    graph.states = [State("h", 1, 0, bytes(graph.values[state].bytes))]
    assert settle_states(graph, TARGET) == 0
    assert graph.nodes[0].demand is None
