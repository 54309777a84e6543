"""Schedules and allocates the tilings on offer, and keeps the plan that needs the fewest bytes.

The directions of streamed segments are chosen here: all from the top down, or every other one from the bottom up. Along a chain
of segments whose outputs overlap their inputs, alternating directions keep the shared bytes in one place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from openneutron.compiler.l1 import KernelGraph
from openneutron.compiler.l2 import TaskList
from openneutron.compiler.plan.allocate import Effort, allocate
from openneutron.compiler.plan.constants import Constants
from openneutron.compiler.plan.schedule import schedule
from openneutron.compiler.plan.segments import Segment, Structure, try_segment
from openneutron.compiler.plan.shortage import shortage
from openneutron.compiler.plan.tile import Tiling, tile
from openneutron.errors import UnsupportedError
from openneutron.machine.targets import Target
from openneutron.microcode.table import Region

FINALISTS = 4  # plans that the solver improves; hill climbing ranks the rest well enough


class Plan(NamedTuple):
    """A tiling with its allocated tasks."""

    tiling: Tiling
    tasks: TaskList
    notes: tuple[str, ...] = ()


def _reverse_every_other(structure: Structure, segments: list[Segment], parity: int) -> list[Segment]:
    """Return the segments with every other streamed one reversed, where its nodes allow that."""
    turned: list[Segment] = []
    count = parity
    for segment in segments:
        if segment.iterations == 1:
            turned.append(segment)
            continue
        count += 1
        if count % 2:
            rows = segment.streams[structure.graph.nodes[segment.last].output].advance
            made = try_segment(structure, segment.first, segment.last, rows, reverse=True, pixels=segment.pixels)
            turned.append(made or segment)
        else:
            turned.append(segment)
    return turned


def _variants(structure: Structure, segments: list[Segment]) -> Iterator[list[Segment]]:
    if any(segment.iterations > 1 for segment in segments):
        # Alternating directions first: they usually need the least, and the first that meets the estimate is taken.
        yield _reverse_every_other(structure, segments, 1)
        yield _reverse_every_other(structure, segments, 0)
    yield segments


def plan(
    graph: KernelGraph,
    target: Target,
    constants: Constants,
    *,
    optimize: str,
    scratch_budget: int | None,
    fetch_constants: bool,
) -> Plan:
    """Return the best plan; an `UnsupportedError` says how many bytes are missing from a budget.

    On targets with a TCM all values live there if they fit, in the fastest schedule: only the NPU uses the TCM, so leaving
    some of it free gains nothing. Otherwise values live in main memory, and a note says so.
    """
    if not target.tcm_bytes:
        found = _plan_in_region(graph, target, constants, optimize, scratch_budget, fetch_constants, tcm=False)
        room = target.sram_bytes - graph.io_bytes
        if found.tasks.held_bytes <= room:
            return found
        return _plan_in_region(graph, target, constants, optimize, room, fetch_constants, tcm=False)
    budget = target.tcm_bytes if scratch_budget is None else min(target.tcm_bytes, scratch_budget)
    try:
        return _plan_in_region(graph, target, constants, optimize, budget, fetch_constants, tcm=True)
    except UnsupportedError as error:
        if scratch_budget is not None:
            raise
        outside = _plan_in_region(graph, target, constants, optimize, None, fetch_constants=False, tcm=False)
        return outside._replace(notes=(f"computed out of main memory, because for the TCM {error.message}",))


def _plan_in_region(
    graph: KernelGraph,
    target: Target,
    constants: Constants,
    optimize: str,
    scratch_budget: int | None,
    fetch_constants: bool,
    *,
    tcm: bool,
) -> Plan:
    """Try the tilings in order (least memory first, with a budget the fastest first) until none can be better."""
    structure = Structure.of(graph)
    effort = Effort.GREEDY if optimize == "fast" else Effort.CLIMB
    plans: list[Plan] = []
    local = Region.TCM if tcm else Region.SCRATCH
    tilings = tile(
        graph,
        target,
        optimize=optimize,
        scratch_budget=scratch_budget,
        local=local,
        fetch_constants=fetch_constants,
        stored=constants.coded_sizes(),
    )
    for tiling in tilings:
        least = min((found.tasks.held_bytes for found in plans), default=None)
        if scratch_budget is None and least is not None and least <= tiling.memory:
            break
        for segments in _variants(structure, tiling.segments):
            tasks = schedule(
                graph,
                segments,
                target,
                fetch_constants=fetch_constants,
                constants=constants,
                tcm=tcm,
                structure=structure,
            )
            plans.append(Plan(tiling._replace(segments=segments), allocate(tasks, effort)))
            if scratch_budget is not None and tasks.held_bytes <= scratch_budget:
                return plans[-1]
            if scratch_budget is None and tasks.held_bytes <= tiling.memory:
                break
    plans.sort(key=lambda found: found.tasks.held_bytes)
    if optimize == "max":
        for found in plans[:FINALISTS]:
            allocate(found.tasks, Effort.EXACT)
            if scratch_budget is not None and found.tasks.held_bytes <= scratch_budget:
                return found
        plans.sort(key=lambda found: found.tasks.held_bytes)
    best = plans[0]
    if scratch_budget is not None:
        raise shortage(graph, best.tasks, scratch_budget, optimize, target)
    return best
