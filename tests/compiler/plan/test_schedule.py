"""Schedules of small graphs: every row is made once, in order, and buffers live exactly as long as they are used."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openneutron.compiler.l1 import KernelGraph
from openneutron.compiler.l2 import Buffer, Call, Dma, Loop, TaskList, Wait
from openneutron.compiler.plan.schedule import PREFETCH_CHANNEL, STAGE_CHANNEL, STEPS, schedule
from openneutron.compiler.plan.segments import Structure, segment_of, whole
from openneutron.machine import targets
from openneutron.microcode.table import Region
from tests.compiler.graphs import Net

TARGET = targets.load("imxrt700")


def _chain(nodes: int = 3, height: int = 8) -> KernelGraph:
    net = Net(height)
    value = net.input
    for _ in range(nodes):
        value = net.conv(value, 3)
    return net.finish(value)


def _whole(graph: KernelGraph, **options: bool) -> TaskList:
    structure = Structure.of(graph)
    return schedule(graph, [whole(structure, at) for at in range(len(graph.nodes))], TARGET, **options)


def _rows_made(graph: KernelGraph, tasks: TaskList) -> dict[int, list[int]]:
    """Node → rows in the order in which calls make them, clipped as the machine clips them."""
    found: dict[int, list[int]] = {at: [] for at in range(len(graph.nodes))}
    for task in tasks.tasks:
        loop = task if isinstance(task, Loop) else Loop(1, (task,)) if isinstance(task, Call) else Loop(0, ())
        for iteration in range(loop.iterations):
            for call in loop.body:
                assert isinstance(call, Call)
                first = call.first_row + iteration * call.row_step
                height = graph.values[graph.nodes[call.node].output].shape[1]
                found[call.node] += range(max(first, 0), min(first + call.rows, height))
    return found


def test_whole_nodes_are_plain_calls_in_order() -> None:
    tasks = _whole(_chain())
    assert [task.node for task in tasks.tasks if isinstance(task, Call)] == [0, 1, 2]
    assert all(
        isinstance(task, Call) and (task.first_row, task.rows, task.row_step) == (0, 8, 0) for task in tasks.tasks
    )


def test_a_buffer_lives_from_the_segment_that_makes_it_to_the_last_that_reads_it() -> None:
    tasks = _whole(_chain())
    (first, second) = (b for b in tasks.buffers if b.region is Region.SCRATCH)
    assert (first.first // STEPS, first.last // STEPS) == (0, 1)
    assert (second.first // STEPS, second.last // STEPS) == (1, 2)


@pytest.mark.parametrize("rows", [1, 2, 3, 8])
def test_a_loop_makes_every_row_once_and_in_order(rows: int) -> None:
    graph = _chain()
    tasks = schedule(graph, [segment_of(Structure.of(graph), 0, 2, rows)], TARGET)
    assert len(tasks.tasks) == 1 and all(made == list(range(8)) for made in _rows_made(graph, tasks).values())


def test_from_the_bottom_up_rows_are_made_backwards() -> None:
    graph = _chain()
    tasks = schedule(graph, [segment_of(Structure.of(graph), 0, 2, 1, reverse=True)], TARGET)
    assert _rows_made(graph, tasks)[2] == list(range(7, -1, -1))


def test_parts_of_an_iteration_make_every_row_once() -> None:
    net = Net(16)
    value = net.conv(net.conv(net.conv(net.input, 3), 3, 2), 3, 2)
    graph = net.finish(value)
    tasks = schedule(graph, [segment_of(Structure.of(graph), 0, 2, 1, pixels=1)], TARGET)
    (loop,) = tasks.tasks
    assert isinstance(loop, Loop) and len(loop.body) > len(graph.nodes)
    for node, made in _rows_made(graph, tasks).items():
        assert made == list(range(graph.values[graph.nodes[node].output].shape[1]))


def test_a_streamed_value_is_held_as_a_ring_of_rows() -> None:
    graph = _chain()
    segment = segment_of(Structure.of(graph), 0, 2, 1)
    tasks = schedule(graph, [segment], TARGET)
    row = graph.values[graph.nodes[0].output].row_bytes
    held = {b.value: b.size for b in tasks.buffers if b.region is Region.SCRATCH}
    assert held == {graph.nodes[at].output: segment.streams[graph.nodes[at].output].ring * row for at in (0, 1)}


def _constants(tasks: TaskList) -> list[Buffer]:
    return [b for b in tasks.buffers if b.name.startswith("constants")]


def test_constants_arrive_one_segment_ahead_where_copies_overlap() -> None:
    graph = _chain()
    structure = Structure.of(graph)
    order = [whole(structure, at) for at in range(3)]
    for overlapping in (False, True):
        target = replace(TARGET, cost=replace(TARGET.cost, dma_overlaps=overlapping))
        tasks = schedule(graph, order, target, fetch_constants=True)
        kinds = [type(task).__name__ for task in tasks.tasks]
        begins = [b.first // STEPS for b in _constants(tasks)]
        if overlapping:
            assert begins == [0, 0, 1] and kinds == [
                "Dma",
                "Wait",
                "Dma",
                "Call",
                "Wait",
                "Dma",
                "Call",
                "Wait",
                "Call",
            ]
        else:
            assert begins == [0, 1, 2] and kinds == ["Dma", "Wait", "Call"] * 3
        assert {task.channel for task in tasks.tasks if isinstance(task, (Dma, Wait))} == {PREFETCH_CHANNEL}
        # Weights and table of a node lie side by side, so one copy brings both.
        copies = [task.bytes for task in tasks.tasks if isinstance(task, Dma)]
        assert copies == [b.size for b in _constants(tasks)]


def test_in_a_tcm_inputs_are_copied_in_and_outputs_out() -> None:
    tasks = _whole(_chain(), tcm=True)
    assert [type(task).__name__ for task in tasks.tasks] == ["Dma", "Wait", "Call", "Call", "Call", "Dma", "Wait"]
    copied_in, copied_out = (task for task in tasks.tasks if isinstance(task, Dma))
    assert {copied_in.channel, copied_out.channel} == {STAGE_CHANNEL}
    assert tasks.buffers[copied_in.source].region is Region.INPUT
    assert tasks.buffers[copied_in.target].region is tasks.buffers[copied_out.source].region is Region.TCM
    assert tasks.buffers[copied_out.target].region is Region.OUTPUT
    assert copied_in.bytes == copied_out.bytes == 8 * 4 * 8


def test_overlaps_join_a_dying_input_with_the_output_of_its_last_reader() -> None:
    graph = _chain()
    tasks = _whole(graph)
    inside = {at for at, b in enumerate(tasks.buffers) if b.region is Region.SCRATCH}
    (pair,) = (one for one in tasks.overlaps if {one.dying, one.born} <= inside)
    values = graph.nodes[0].output, graph.nodes[1].output
    assert (tasks.buffers[pair.dying].value, tasks.buffers[pair.born].value) == values
    assert not pair.exact and pair.distance == 8 * graph.values[values[0]].row_bytes
    assert _whole(graph, overlapping=False).overlaps == []
