"""The verifier refuses broken schedules: each mutation of a good one must be found."""

from __future__ import annotations

import dataclasses

import pytest

from openneutron.compiler.back.verify_schedule import are_interleaved, verify
from openneutron.compiler.l1 import KernelGraph
from openneutron.compiler.l2 import Call, Dma, Loop, TaskList, Wait
from openneutron.compiler.plan import segments
from openneutron.compiler.plan.allocate import allocate
from openneutron.compiler.plan.schedule import schedule
from openneutron.compiler.plan.segments import Structure
from openneutron.errors import InternalError
from openneutron.machine import targets
from openneutron.microcode.table import Region
from tests.compiler.graphs import Net

TARGET = targets.load("imxrt700")


def _graph() -> KernelGraph:
    net = Net(24)
    return net.finish(net.conv(net.conv(net.conv(net.input, 3), 3, 2), 3))


def _cascade(graph: KernelGraph) -> TaskList:
    return allocate(schedule(graph, [segments.segment_of(Structure.of(graph), 0, 2, 1)], TARGET))


def _whole(graph: KernelGraph, *, fetch: bool = False) -> TaskList:
    order = [segments.whole(Structure.of(graph), n) for n in range(len(graph.nodes))]
    return allocate(schedule(graph, order, TARGET, fetch_constants=fetch))


def _edit_loop(tasks: TaskList, body: tuple[Call, ...]) -> None:
    loop = tasks.tasks[0]
    assert isinstance(loop, Loop)
    tasks.tasks[0] = Loop(loop.iterations, body)


def _calls(tasks: TaskList) -> list[Call]:
    loop = tasks.tasks[0]
    assert isinstance(loop, Loop)
    return [step for step in loop.body if isinstance(step, Call)]


def test_the_unbroken_schedules_pass() -> None:
    graph = _graph()
    for tasks in (_cascade(graph), _whole(graph), _whole(graph, fetch=True)):
        verify(graph, tasks, TARGET)


def test_channels_of_the_same_pixels_share_no_byte() -> None:
    graph = _graph()
    operand = next(one for one in _calls(_cascade(graph))[0].operands if one is not None)
    one = operand._replace(offset=809, pitch=2472, plane=425184, pixel=8, channels=1)
    for offset, apart in ((7, True), (9, False), (808, True), (2472 + 7, True), (1, False)):
        assert are_interleaved(one, one._replace(offset=offset)) is apart, offset
    wide = one._replace(offset=6, channels=3)  # the last of them lies in the next pixel
    assert not are_interleaved(one._replace(offset=0), wide)
    assert not are_interleaved(one, one._replace(offset=7, pitch=2473))
    assert not are_interleaved(one, one._replace(offset=7, pixel=4))


def test_ring_short_of_one_row_is_refused() -> None:
    graph = _graph()
    tasks = _cascade(graph)
    ring_buffer = next(i for i, b in enumerate(tasks.buffers) if b.region is Region.SCRATCH)

    def shorten(call: Call) -> Call:
        operands = tuple(
            o._replace(ring=o.ring - 1) if o is not None and o.buffer == ring_buffer else o for o in call.operands
        )
        return dataclasses.replace(call, operands=operands)

    _edit_loop(tasks, tuple(shorten(call) for call in _calls(tasks)))
    with pytest.raises(InternalError, match="reads row"):
        verify(graph, tasks, TARGET)


def test_swapped_calls_are_refused() -> None:
    graph = _graph()
    tasks = _cascade(graph)
    first, second, third = _calls(tasks)
    _edit_loop(tasks, (second, first, third))
    with pytest.raises(InternalError, match="reads row"):
        verify(graph, tasks, TARGET)


def test_overlapping_buffers_are_refused() -> None:
    graph = _graph()
    tasks = _whole(graph)
    scratch = [b for b in tasks.buffers if b.region is Region.SCRATCH]
    scratch[1].offset = scratch[0].offset + 16
    with pytest.raises(InternalError):
        verify(graph, tasks, TARGET)


def test_dropped_wait_is_refused() -> None:
    graph = _graph()
    tasks = _whole(graph, fetch=True)
    tasks.tasks = [task for task in tasks.tasks if not isinstance(task, Wait)]
    with pytest.raises(InternalError, match="not waited for"):
        verify(graph, tasks, TARGET)


def test_missing_iteration_leaves_the_output_incomplete() -> None:
    graph = _graph()
    tasks = _cascade(graph)
    loop = tasks.tasks[0]
    assert isinstance(loop, Loop)
    tasks.tasks[0] = Loop(loop.iterations - 1, loop.body)
    with pytest.raises(InternalError, match="not complete"):
        verify(graph, tasks, TARGET)


def test_misaligned_buffer_is_refused() -> None:
    graph = _graph()
    tasks = _whole(graph)
    for b in tasks.buffers:
        if b.region is Region.SCRATCH:
            b.offset += 8
    tasks.scratch_bytes += 8
    with pytest.raises(InternalError, match="multiple of 16"):
        verify(graph, tasks, TARGET)


def _shifted(tasks: TaskList, position: int, by: int) -> None:
    """Move one operand of every call by some bytes."""
    for at, task in enumerate(tasks.tasks):
        if isinstance(task, Call):
            operands = list(task.operands)
            operand = operands[position]
            assert operand is not None
            operands[position] = operand._replace(offset=operand.offset + by)
            tasks.tasks[at] = dataclasses.replace(task, operands=tuple(operands))


@pytest.mark.parametrize(("position", "by"), [(2, 16), (1, -16)])
def test_constants_read_in_place_must_be_the_nodes_own(position: int, by: int) -> None:
    graph = _graph()
    tasks = _whole(graph)
    _shifted(tasks, position, by)
    with pytest.raises(InternalError, match=r"reads byte .* of the weights"):
        verify(graph, tasks, TARGET)


def test_a_wrong_height_is_refused() -> None:
    graph = _graph()
    tasks = _whole(graph)
    call = tasks.tasks[1]
    assert isinstance(call, Call) and call.operands[0] is not None
    first = call.operands[0]._replace(height=call.operands[0].height - 1)
    tasks.tasks[1] = dataclasses.replace(call, operands=(first, *call.operands[1:]))
    with pytest.raises(InternalError, match="is told that"):
        verify(graph, tasks, TARGET)


def test_the_source_of_a_copy_under_way_is_protected() -> None:
    graph = _graph()
    order = [segments.whole(Structure.of(graph), n) for n in range(len(graph.nodes))]
    target = targets.load("imx95")
    tasks = allocate(schedule(graph, order, target, fetch_constants=True, tcm=True))
    verify(graph, tasks, target)
    staged = next(at for at, task in enumerate(tasks.tasks) if isinstance(task, Wait))
    last = max(at for at, task in enumerate(tasks.tasks) if isinstance(task, Dma))
    source = tasks.tasks[last]
    # The result leaves the TCM while the call that makes it runs a second time.
    again = max(at for at, task in enumerate(tasks.tasks) if isinstance(task, Call))
    assert isinstance(source, Dma) and staged < again < last
    tasks.tasks.insert(last + 1, tasks.tasks[again])
    with pytest.raises(InternalError, match="while a copy reads it"):
        verify(graph, tasks, target)
