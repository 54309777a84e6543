"""The search on graphs so small that every schedule on offer can be tried."""

from __future__ import annotations

from itertools import product

import pytest

from openneutron.compiler.cost import CostModel
from openneutron.compiler.l1 import KernelGraph
from openneutron.compiler.plan.allocate import Effort, allocate
from openneutron.compiler.plan.candidates import IMPOSSIBLE, candidates
from openneutron.compiler.plan.constants import constants_of
from openneutron.compiler.plan.schedule import schedule
from openneutron.compiler.plan.search import Plan, plan
from openneutron.compiler.plan.segments import Segment, Structure, segment_of, try_segment, whole
from openneutron.compiler.plan.shortage import Shortage
from openneutron.compiler.plan.tile import SLACK
from openneutron.machine import targets
from tests.compiler.graphs import Net

TARGET = targets.load("imxrt700")


def _chain(height: int = 8) -> KernelGraph:
    net = Net(height, width=16)
    return net.finish(net.conv(net.conv(net.conv(net.input, 3), 3, 2), 3))


def _plan(graph: KernelGraph, optimize: str = "default", budget: int | None = None, chip: str = "imxrt700") -> Plan:
    return plan(
        graph, targets.load(chip), constants_of(graph), optimize=optimize, scratch_budget=budget, fetch_constants=False
    )


def _offered(graph: KernelGraph) -> list[tuple[list[Segment], int]]:
    """Every way to divide the nodes among candidates, with its cycles."""
    structure, found = Structure.of(graph), candidates(graph, CostModel(graph, TARGET))
    ways: list[list[tuple[list[Segment], int]]] = [[([], 0)]]
    for last, columns in enumerate(found):
        ways.append([])
        for first, rows, pixels, _, cycles in columns.T.tolist():
            if cycles < IMPOSSIBLE:
                last_one = segment_of(structure, first, last, rows, pixels=pixels) if rows else whole(structure, last)
                ways[-1] += [([*before, last_one], spent + cycles) for before, spent in ways[first]]
    return ways[-1]


def _turned(structure: Structure, segments: list[Segment]) -> list[list[Segment]]:
    """The segments in every combination of directions."""
    both = []
    for one in segments:
        rows = one.streams[structure.graph.nodes[one.last].output].advance
        other = try_segment(structure, one.first, one.last, rows, reverse=True, pixels=one.pixels)
        both.append([one] if one.iterations == 1 or other is None else [one, other])
    return [list(each) for each in product(*both)]


def test_it_holds_next_to_the_fewest_bytes_of_all_schedules_of_its_speed() -> None:
    graph = _chain()
    structure, offered = Structure.of(graph), _offered(graph)
    fastest = min(cycles for _, cycles in offered)
    allowed = [segments for segments, cycles in offered if cycles <= fastest * SLACK[0] // SLACK[1]]
    heights = [
        allocate(schedule(graph, turned, TARGET, structure=structure), Effort.CLIMB).held_bytes
        for segments in allowed
        for turned in _turned(structure, segments)
    ]
    chosen = _plan(graph)
    assert len(offered) > 20 and min(heights) < max(heights)
    assert chosen.tasks.held_bytes == min(heights)
    ends = [(one.first, one.last) for one in chosen.tiling.segments]
    assert [first for first, _ in ends] == [0, *(last + 1 for _, last in ends[:-1])] and ends[-1][1] == 2


def test_with_a_budget_it_fits_or_says_what_is_missing() -> None:
    graph = _chain(32)
    free = _plan(graph, "fast").tasks.held_bytes
    least = _plan(graph).tasks.held_bytes
    assert least < free
    for budget in (free, (free + least) // 2, least):
        assert _plan(graph, budget=budget).tasks.held_bytes <= budget
    with pytest.raises(Shortage) as error:
        _plan(graph, budget=16)
    assert error.value.needs == error.value.ends + 16 + int(error.value.message.split(", ")[2].split()[0])


def test_more_effort_holds_no_more() -> None:
    graph = _chain(16)
    fast, usual, most = (_plan(graph, effort).tasks.held_bytes for effort in ("fast", "default", "max"))
    assert most <= usual <= fast


def test_where_there_is_a_tcm_it_is_used_if_it_fits() -> None:
    inside = _plan(_chain(), chip="imx95")
    assert inside.tasks.tcm_bytes and not inside.tasks.scratch_bytes and not inside.notes
    outside = _plan(_chain(32 << 10), "fast", chip="imx95")
    assert outside.tasks.scratch_bytes and not outside.tasks.tcm_bytes
    assert "computed out of main memory" in outside.notes[0]
