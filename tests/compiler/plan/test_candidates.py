"""Candidates: nothing is offered that no schedule needs, and what is offered costs what the finished schedule costs."""

from __future__ import annotations

import random
from dataclasses import replace

from openneutron.compiler.cost import CostModel
from openneutron.compiler.l1 import KernelGraph
from openneutron.compiler.l2 import Call, Loop, TaskList
from openneutron.compiler.plan.allocate import lower_bound
from openneutron.compiler.plan.candidates import FRINGE, MAX_SEGMENT, _reach, candidates
from openneutron.compiler.plan.schedule import STEPS, schedule
from openneutron.compiler.plan.segments import Structure, segment_of, whole
from openneutron.machine import targets
from openneutron.microcode.table import Region
from tests.compiler.graphs import Net

TARGET = targets.load("imxrt700")


def _pyramid(height: int = 64) -> KernelGraph:
    net = Net(height, width=16)
    value = net.input
    for stride in (1, 2, 1, 2, 1, 2, 1):
        value = net.conv(value, 3, stride)
    return net.finish(value)


def _schedule(graph: KernelGraph, first: int, last: int, rows: int, pixels: int) -> TaskList:
    """The segment as it is offered, all other nodes whole: it is segment number `first`."""
    structure = Structure.of(graph)
    order = [whole(structure, n) for n in range(first)]
    order.append(segment_of(structure, first, last, rows, pixels=pixels) if rows else whole(structure, last))
    order += [whole(structure, n) for n in range(last + 1, len(graph.nodes))]
    return schedule(graph, order, TARGET)


def _live_bytes(tasks: TaskList, segment: int, *, sharing: bool) -> int:
    """The most scratch bytes alive at any position of a segment, less what pairs of buffers may share."""
    start, end = segment * STEPS, segment * STEPS + STEPS - 1
    chosen = [
        at for at, b in enumerate(tasks.buffers)
        if b.region is Region.SCRATCH and b.first >= 0 and b.first <= end and start <= b.last
    ]  # fmt: skip
    index = {at: n for n, at in enumerate(chosen)}
    clipped = [
        replace(tasks.buffers[at], first=max(tasks.buffers[at].first, start), last=min(tasks.buffers[at].last, end))
        for at in chosen
    ]
    pairs = [
        one._replace(dying=index[one.dying], born=index[one.born])
        for one in tasks.overlaps
        if one.dying in index and one.born in index
    ]
    return lower_bound(clipped, pairs if sharing else ())


def _cycles(graph: KernelGraph, first: int, last: int, rows: int, pixels: int) -> int:
    """Cycles of a segment by its calls, each priced on its clipped rows."""
    costs, total = CostModel(graph, TARGET), 0
    for task in _schedule(graph, first, last, rows, pixels).tasks:
        loop = task if isinstance(task, Loop) else Loop(1, (task,)) if isinstance(task, Call) else Loop(0, ())
        for call in loop.body:
            if isinstance(call, Call) and first <= call.node <= last:
                height = graph.values[graph.nodes[call.node].output].shape[1]
                for i in range(loop.iterations):
                    at = call.first_row + i * call.row_step
                    total += costs.cycles(call.node, min(at + call.rows, height) - max(at, 0))
    return total


def test_cycles_are_never_less_than_those_of_the_calls() -> None:
    graph = _pyramid()
    found = candidates(graph, CostModel(graph, TARGET))
    rows = [(last, *row) for last, columns in enumerate(found) for row in columns.T.tolist()]
    assert any(pixels for _, _, _, pixels, _, _ in rows) and any(first < last - 2 for last, first, *_ in rows)
    for last, first, height, pixels, _, cycles in random.Random(0).sample(rows, 60):
        assert cycles >= _cycles(graph, first, last, height, pixels), "rows that nobody reads are not made"


def test_memory_is_what_the_finished_schedule_holds() -> None:
    graph = _pyramid(32)
    found = candidates(graph, CostModel(graph, TARGET))
    rows = [(last, *row) for last, columns in enumerate(found) for row in columns.T.tolist()]
    for last, first, height, pixels, memory, _ in random.Random(1).sample(rows, 60):
        tasks = _schedule(graph, first, last, height, pixels)
        plain = _live_bytes(tasks, first, sharing=False)
        assert _live_bytes(tasks, first, sharing=True) <= memory <= plain
        assert memory == plain or height, "only stripes are offered with what they share"


def test_nothing_grows_where_every_node_fits_alone() -> None:
    net = Net(8)
    graph = net.finish(net.conv(net.input, 1))
    (columns,) = candidates(graph, CostModel(graph, TARGET))
    assert set(columns[0].tolist()) == {0}


def test_without_streams_each_node_has_one_way() -> None:
    graph = _pyramid()
    assert [columns.shape[1] for columns in candidates(graph, CostModel(graph, TARGET), stream=False)] == [1] * 7


def test_runs_reach_a_few_nodes_beyond_those_that_do_not_fit() -> None:
    alone = [1] * 10 + [9, 1, 9] + [1] * 10
    reach = _reach(alone, 5)
    assert reach[:10] == list(range(10))
    assert reach[10 : 13 + FRINGE] == [10 - FRINGE] * (3 + FRINGE)
    assert reach[13 + FRINGE :] == list(range(13 + FRINGE, 23))
    assert _reach([9] * 100, 5)[-1] == 100 - MAX_SEGMENT


def test_constants_count_where_they_are_fetched() -> None:
    graph = _pyramid()
    memory = [
        {(last, *row[:3]): row[3] for last, columns in enumerate(found) for row in columns.T.tolist()}
        for found in (candidates(graph, CostModel(graph, TARGET), fetch_constants=fetch) for fetch in (False, True))
    ]
    kept, fetched = memory
    both = kept.keys() & fetched.keys()
    assert all(fetched[one] >= kept[one] for one in both)
    assert {one[0] - one[1] for one in both if fetched[one] > kept[one]} >= {1, 2}  # more than one node's constants
    assert all(
        fetched[one] == kept[one] for one in both if one[0] == one[1]
    )  # room for one node's is there in any case
