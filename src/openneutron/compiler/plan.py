"""Plan: turn tilings into allocated task lists and keep the one that holds the fewest bytes.

The directions of streamed segments are settled here: rows run from the top down, or, every other time along a chain of
segments whose output lies over their input, from the bottom up, so that the shared region does not drift.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from openneutron.compiler.allocate import Effort, allocate
from openneutron.compiler.constants import constants_of
from openneutron.compiler.l1 import KernelGraph
from openneutron.compiler.l2 import TaskList
from openneutron.compiler.schedule import schedule
from openneutron.compiler.segments import Segment, Structure, segment_of
from openneutron.compiler.tile import Tiling, tile
from openneutron.errors import UnsupportedError
from openneutron.targets import Target

FINALISTS = 4  # plans that hill climbing or the solver improves; greedy ranks the rest well enough


@dataclass(frozen=True)
class Plan:
    """A tiling with its allocated tasks."""

    tiling: Tiling
    tasks: TaskList
    notes: tuple[str, ...] = ()


def _turned(structure: Structure, segments: list[Segment], parity: int) -> list[Segment]:
    """Every other streamed segment along the order reversed, where its nodes allow it."""
    turned: list[Segment] = []
    count = parity
    for segment in segments:
        if segment.iterations == 1:
            turned.append(segment)
            continue
        count += 1
        nodes = structure.graph.nodes[segment.first : segment.last + 1]
        if count % 2 and not any(node.downward for node in nodes):
            rows = segment.streams[nodes[-1].output].advance
            turned.append(
                segment_of(structure, segment.first, segment.last, rows, reverse=True, pixels=segment.pixels)
            )
        else:
            turned.append(segment)
    return turned


def _variants(structure: Structure, segments: list[Segment]) -> Iterator[list[Segment]]:
    yield segments
    if any(segment.iterations > 1 for segment in segments):
        yield _turned(structure, segments, 0)
        yield _turned(structure, segments, 1)


def plan(
    graph: KernelGraph, target: Target, *, optimize: str, scratch_budget: int | None, fetch_constants: bool
) -> Plan:
    """The best of the tilings on offer; an `UnsupportedError` says how many bytes are missing from a budget.

    On targets with a TCM everything is computed there where it fits, else out of main memory, with a note.
    """
    if not target.tcm_bytes:
        return _planned(graph, target, optimize, scratch_budget, fetch_constants, tcm=False)
    budget = min(target.tcm_bytes, scratch_budget or target.tcm_bytes)
    try:
        found = _planned(graph, target, optimize, scratch_budget, fetch_constants, tcm=True)
        if found.tasks.held_bytes <= budget:
            return found
        return _planned(graph, target, optimize, budget, fetch_constants, tcm=True)
    except UnsupportedError as error:
        if scratch_budget is not None:
            raise
        outside = _planned(graph, target, optimize, None, fetch_constants, tcm=False)
        return replace(outside, notes=(f"computed out of main memory, because for the TCM {error.message}",))


def _planned(
    graph: KernelGraph, target: Target, optimize: str, scratch_budget: int | None, fetch_constants: bool, *, tcm: bool
) -> Plan:
    """Greedy allocation ranks all variants, the better allocators see only the front runners."""
    structure = Structure.of(graph)
    constants = constants_of(graph)
    ranked: list[Plan] = []
    for tiling in tile(graph, target, optimize=optimize, scratch_budget=scratch_budget):
        for segments in _variants(structure, tiling.segments):
            tasks = schedule(graph, segments, target, fetch_constants=fetch_constants, constants=constants, tcm=tcm)
            ranked.append(Plan(Tiling(segments, tiling.pareto), allocate(tasks, Effort.GREEDY)))
            if scratch_budget is not None and tasks.held_bytes <= scratch_budget:
                return ranked[-1]
    ranked.sort(key=lambda found: found.tasks.held_bytes)
    finalists = ranked[:FINALISTS]
    for found in finalists:
        allocate(found.tasks, Effort.EXACT if optimize == "max" else Effort.CLIMB)
        if scratch_budget is not None and found.tasks.held_bytes <= scratch_budget:
            return found
    best = min(finalists, key=lambda found: found.tasks.held_bytes)
    if scratch_budget is not None:
        missing = best.tasks.held_bytes - scratch_budget
        raise UnsupportedError(
            f"the smallest schedule found needs {best.tasks.held_bytes} bytes of scratch and prefetch, {missing} more than "
            f"the budget leaves beside inputs and outputs",
            hint="lower the input resolution, or raise --fit by that much",
        )
    return best
