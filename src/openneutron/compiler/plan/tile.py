"""Chooses which consecutive nodes become streamed segments and how many rows each call makes.

Dynamic programming over the cut points of the topological order finds, for a budget of scratch bytes, the segments and stripe
heights with the fewest cycles. More budget never costs cycles, so bisection finds the smallest budget that costs at most
`SLACK` more than the fastest schedule. Weakness: memory is the sum of live bytes; fragmentation may need more.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from openneutron.compiler.cost import CostModel
from openneutron.compiler.l1 import KernelGraph
from openneutron.compiler.plan.candidates import IMPOSSIBLE, Candidate, Columns, candidates
from openneutron.compiler.plan.segments import Segment, Structure, segment_of, whole
from openneutron.machine.targets import Target
from openneutron.microcode.table import Region

TRIES = 4  # tilings to allocate: fragmentation may change the order of tilings that need similar memory
SLACK = (105, 100)  # memory may cost at most 5 % of the cycles of the fastest schedule
# A microcontroller's core has no memory beside its SRAM, so there 15 % are allowed for three fifths of whole tensors' memory.
PROCESSOR_SLACK, PROCESSOR_SHARE = (115, 100), (3, 5)


class Tiling(NamedTuple):
    """Segments in order, their estimated scratch bytes, and the Pareto points (scratch bytes, cycles) that were found."""

    segments: list[Segment]
    memory: int = 0
    pareto: tuple[tuple[int, int], ...] = ()


class _Offers:
    """The candidates of all last nodes in one array, to choose the best ones for one budget after the other."""

    def __init__(self, found: list[Columns]) -> None:
        self._found = found
        _, _, _, self._memory, self._cycles = np.concatenate(found, axis=1)
        ends = [0, *accumulate(columns.shape[1] for columns in found)]
        self._places = [(columns[0], slice(*at)) for columns, at in zip(found, pairwise(ends), strict=True)]

    def best(self, budget: int) -> tuple[int, list[Candidate]] | None:
        """Return the fewest cycles within the budget and the candidates that give them, or None if nothing fits."""
        cycles = np.where(self._memory <= budget, self._cycles, IMPOSSIBLE)
        cost = np.full(len(self._found) + 1, IMPOSSIBLE, np.int64)
        cost[0] = 0
        taken = []
        for last, (first, place) in enumerate(self._places):
            total = cost[first] + cycles[place]
            at = total.argmin()
            taken.append(at)
            cost[last + 1] = min(total[at], IMPOSSIBLE)
        if cost[-1] >= IMPOSSIBLE:
            return None
        chosen: list[Candidate] = []
        end = len(self._found)
        while end:
            begin, *others = self._found[end - 1][:, taken[end - 1]].tolist()
            chosen.append(Candidate(begin, end - 1, *others))
            end = begin
        return int(cost[-1]), chosen[::-1]


def tile(
    graph: KernelGraph,
    target: Target,
    *,
    optimize: str = "default",
    scratch_budget: int | None = None,
    local: Region = Region.SCRATCH,
    fetch_constants: bool = False,
    stored: Mapping[int, int] | None = None,
) -> list[Tiling]:
    """Return tilings of the graph to allocate, most promising first; with a budget, fast ones that should fit it.

    `stored` are the coded sizes of constants. The search prices weights as plain, so that layers of one shape are in one
    equivalence class whatever their weights are; the Pareto points that are returned count coded sizes.

    Example:
        >>> tiling, *others = tile(kernel_graph, targets.load("imxrt700"))
        >>> [(s.first, s.last) for s in tiling.segments]
    """
    costs = CostModel(graph, target, local=local)
    found = candidates(graph, costs, stream=optimize != "fast", fetch_constants=fetch_constants)
    budgets = sorted({size for *_, memory, _ in found for size in memory.tolist()})
    structure = Structure.of(graph)
    if not budgets:
        return [Tiling([])]
    offers = _Offers(found)
    tried: dict[int, tuple[int, list[Candidate]] | None] = {}

    def best(at: int) -> tuple[int, list[Candidate]] | None:
        if at not in tried:
            tried[at] = offers.best(budgets[at])
        return tried[at]

    fastest = best(len(budgets) - 1)
    assert fastest is not None
    if optimize == "fast" and scratch_budget is None:
        return [_tiling(structure, fastest[1], ())]
    limit = fastest[0] * SLACK[0] // SLACK[1] if scratch_budget is None else IMPOSSIBLE - 1
    low, high = 0, len(budgets) - 1
    while low < high:
        middle = (low + high) // 2
        attempt = best(middle)
        if attempt is not None and attempt[0] <= limit:
            high = middle
        else:
            low = middle + 1
    if scratch_budget is None and target.processor and optimize != "fast":
        low = _within_share(best, budgets, low, _whole(found), fastest[0])
    if scratch_budget is None:
        chosen = _next_choices(best, low, len(budgets) - 1)
    else:
        fitting = [at for at in range(low, len(budgets)) if budgets[at] <= scratch_budget]
        chosen = _distinct(best, [*reversed(fitting[-TRIES * TRIES :: TRIES]), low])
    met = [(budgets[at], *p) for at in sorted(tried) if (p := tried[at]) is not None]
    # Constants copied to SRAM are plain when the array loads them.
    coded = {} if fetch_constants or stored is None else stored
    points = _pareto(_price_as_stored(structure, met, costs.with_coded_sizes(coded)))
    return [_tiling(structure, items, points) for items in chosen]


def _whole(found: list[Columns]) -> int:
    """Return the memory of the schedule that computes whole tensors."""
    return max(int(columns[3, columns[1] == 0].max(initial=0)) for columns in found)


def _within_share(
    best: Callable[[int], tuple[int, list[Candidate]] | None], budgets: list[int], low: int, whole: int, fastest: int
) -> int:
    """Return the position of a processor's budget: `low`, or the largest one within its share of `whole` where that pays."""
    at = bisect_right(budgets, whole * PROCESSOR_SHARE[0] // PROCESSOR_SHARE[1]) - 1
    if not 0 <= at < low:
        return low
    attempt = best(at)
    limit = fastest * PROCESSOR_SLACK[0] // PROCESSOR_SLACK[1]
    return at if attempt is not None and attempt[0] <= limit else low


def _price_as_stored(
    structure: Structure, met: list[tuple[int, int, list[Candidate]]], costs: CostModel
) -> Iterable[tuple[int, int]]:
    """Yield each budget that was tried with its cycles, which count the loading of weights in their coded size."""
    known: dict[Candidate, int] = {}
    for budget, cycles, items in met:
        if costs.stored:
            known.update((item, price_candidate(structure, item, costs)) for item in items if item not in known)
            cycles = sum(known[item] for item in items)
        yield budget, cycles


def price_candidate(structure: Structure, item: Candidate, costs: CostModel) -> int:
    """Return the cycles of a candidate by another cost model than the one that found it."""
    graph = structure.graph
    heights = [graph.values[node.output].shape[1] for node in graph.nodes[item.first : item.last + 1]]
    if item.rows == 0:
        return costs.cycles(item.last, heights[-1])
    segment = segment_of(structure, item.first, item.last, item.rows, pixels=item.pixels)
    nodes = range(item.first, item.last + 1)
    if graph.nodes[item.first].loop >= 0:
        return segment.iterations * sum(costs.cycles(at, 1) for at in nodes)
    streams = [segment.streams[graph.nodes[at].output] for at in nodes]
    return sum(costs.price_stripes(at, h, s.rows, s.lead) for at, h, s in zip(nodes, heights, streams, strict=True))


def _next_choices(
    best: Callable[[int], tuple[int, list[Candidate]] | None], low: int, high: int
) -> list[list[Candidate]]:
    """Return the first few different choices for growing budgets from `low` on.

    A choice that is best for two budgets is best for all between them, so bisection finds where the next one begins.
    """
    at, chosen = low, []
    while True:
        attempt = best(at)
        if attempt is not None:
            chosen.append(attempt[1])
        if len(chosen) == TRIES or best(high) == attempt:
            return chosen
        same, other = at, high
        while other - same > 1:
            middle = (same + other) // 2
            same, other = (middle, other) if best(middle) == attempt else (same, middle)
        at = other


def _distinct(best: Callable[[int], tuple[int, list[Candidate]] | None], order: Iterable[int]) -> list[list[Candidate]]:
    """Return the first few different choices for budgets in the given order."""
    chosen: list[list[Candidate]] = []
    for at in order:
        attempt = best(at)
        if attempt is not None and attempt[1] not in chosen:
            chosen.append(attempt[1])
            if len(chosen) == TRIES:
                break
    return chosen


def _tiling(structure: Structure, chosen: list[Candidate], pareto: tuple[tuple[int, int], ...]) -> Tiling:
    segments = [
        whole(structure, item.last)
        if item.rows == 0
        else segment_of(structure, item.first, item.last, item.rows, pixels=item.pixels)
        for item in chosen
    ]
    return Tiling(segments, max(item.memory for item in chosen), pareto)


def _pareto(points: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    kept: list[tuple[int, int]] = []
    for memory, cycles in points:
        if not kept or cycles < kept[-1][1]:
            kept.append((memory, cycles))
    return tuple(kept)
