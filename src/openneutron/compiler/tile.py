"""Tile: choose which runs of nodes become streamed segments and how many rows each call makes.

Dynamic programming over the cut points of the topological order: for a budget of scratch bytes, the least cycles over
segments x stripe heights whose memory fits. Cycles never grow with the budget, so the smallest budget that costs at most
`SLACK` more than the fastest schedule is found by bisection. Weakness: stripes are uniform per segment, and memory is
counted as the sum of live bytes, which the allocator may exceed by fragmentation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from openneutron.compiler.cost import CostModel
from openneutron.compiler.l1 import KernelGraph, RowDemand
from openneutron.compiler.segments import Segment, Stream, Structure, extend, segment_of, whole
from openneutron.microcode.encode import align
from openneutron.targets import Target

MAX_SEGMENT = (
    32  # nodes; longer segments were never chosen on the reference models (docs/compiler.md, Choosing segments)
)
# Pixels per call worth trying: below 16 the call overhead dominates, from 24 on an 8x8 array hides its weights, above 512
# nothing changes.
STRIPE_PIXELS = (16, 24, 32, 64, 128, 256, 512)
STRIPE_ROWS = (1, 2, 4, 8)
TRIES = 4  # tilings handed to the allocator: its fragmentation may reorder near neighbours
SLACK = (105, 100)  # memory may cost at most 5 % of the cycles of the fastest schedule


class Candidate(NamedTuple):
    """One way to run nodes [first, last]: scratch bytes while it runs, and cycles."""

    first: int
    last: int
    rows: int  # 0: one node on whole tensors
    memory: int
    cycles: int


# Candidates that end at one node, as columns (first, rows, memory, cycles): there are hundreds per node.
Columns = npt.NDArray[np.int64]
_INFINITE = 1 << 61  # cycles; twice that still fits INT64


@dataclass(frozen=True)
class Tiling:
    """Segments in order, and the (estimated scratch bytes, cycles) points that were on offer."""

    segments: list[Segment]
    pareto: tuple[tuple[int, int], ...]


def _lifetimes(graph: KernelGraph) -> dict[int, tuple[int, int]]:
    """Scratch roots → (first node, last node) between which they hold data, were they stored whole."""
    external = set(graph.inputs) | {graph.root(v) for v in graph.outputs}
    spans: dict[int, tuple[int, int]] = {}
    for at, node in enumerate(graph.nodes):
        for value in (node.output, *node.inputs()):
            root = graph.root(value)
            if root in external or graph.values[root].data is not None:
                continue
            first, _ = spans.get(root, (at, at))
            spans[root] = (first, at)
    return spans


def _stripe_heights(height: int, width: int) -> list[int]:
    """Rows per call worth trying: a few, and those that just fill, or just do not overflow, whole tiles of pixels."""
    rows = {
        *STRIPE_ROWS,
        *(-(-pixels // width) for pixels in STRIPE_PIXELS),
        *(pixels // width for pixels in STRIPE_PIXELS),
    }
    return [*sorted(r for r in rows if 0 < r < height), height]


def candidates(graph: KernelGraph, costs: CostModel, *, stream: bool = True) -> list[Columns]:
    """Every segment worth considering, for each last node in a fixed order."""
    structure = Structure.of(graph)
    spans = _lifetimes(graph)
    born: list[list[int]] = [[] for _ in graph.nodes]
    dies: list[list[int]] = [[] for _ in graph.nodes]
    for root, (first, last) in spans.items():
        born[first].append(root)
        dies[last].append(root)
    sizes = {root: align(graph.values[root].stored_bytes) for root in spans}
    alive_before: list[int] = []  # bytes of roots born before node n that are still needed at n
    alive = 0
    for n in range(len(graph.nodes)):
        alive_before.append(alive)
        alive += sum(sizes[r] for r in born[n]) - sum(sizes[r] for r in dies[n])
    found: list[Columns] = []
    for last, node in enumerate(graph.nodes):
        value = graph.values[node.output]
        own = sum(sizes[r] for r in born[last]) + align(node.workspace)
        here = [(last, 0, alive_before[last] + own, costs.cycles(last, value.shape[1]))]
        if stream and node.demand is not None and value.shape[0] == 1:
            for rows in _stripe_heights(value.shape[1], value.shape[2]):
                here += _grow(structure, costs, spans, sizes, alive_before, last, rows)
        found.append(np.array(here, np.int64).T.copy())
    return found


def _grow(
    structure: Structure, costs: CostModel, spans: dict[int, tuple[int, int]], sizes: dict[int, int],
    alive_before: list[int], last: int, rows: int,
) -> list[tuple[int, int, int, int]]:  # fmt: skip
    """Segments that end at `last` with this stripe height, grown backwards one node at a time."""
    graph = structure.graph
    nodes, values = graph.nodes, graph.values
    found: list[tuple[int, int, int, int]] = []
    streams: dict[int, Stream] = {}
    steady, cycles = 0, 0
    passing = dict.fromkeys(range(last + 1), 0)  # node → bytes that are held only around its call
    most = 0
    readers: dict[int, list[tuple[Stream, RowDemand, int]]] = {}
    sink = graph.root(nodes[last].output)
    shares = sink in sizes and values[sink].alias is None
    for first in range(last, max(last - MAX_SEGMENT, -1), -1):
        made = extend(structure, streams, first, last, rows)
        if made is None:
            break
        node = nodes[first]
        output = node.output
        streams[output] = made
        value = values[output]
        if made.ring:
            size = align(made.ring * value.row_bytes)
            if not made.transient:
                steady += size
            else:
                for at in range(first, structure.last_use(output) + 1):
                    passing[at] += size
                    most = max(most, passing[at])
        else:
            root = graph.root(output)
            if root in spans and spans[root][0] == first:
                steady += sizes[root]
        if node.workspace:
            passing[first] += align(node.workspace)
            most = max(most, passing[first])
        held = steady + most
        cycles += costs.striped(first, value.shape[1], made.advance, made.lead)
        readers.pop(output, None)
        assert node.demand is not None
        for position, demand in node.demand.items():
            operand = node.operands[position]
            if isinstance(operand, int) and operand != output:
                readers.setdefault(operand, []).append((made, demand, int(first != last)))
        if first == last and made.advance >= value.shape[1]:
            continue  # the whole-tensor candidate
        memory = alive_before[first] + held
        if shares:
            memory -= _shared(graph, spans, readers, sink, streams[nodes[last].output], last)
        found.append((first, rows, memory, cycles))
    return found


def _shared(
    graph: KernelGraph, spans: dict[int, tuple[int, int]], readers: dict[int, list[tuple[Stream, RowDemand, int]]],
    sink: int, stream: Stream, last: int,
) -> int:  # fmt: skip
    """Bytes that the sink may share with one input that dies in the segment (`overlap` gives the exact distance)."""
    out = graph.values[sink]
    best, out_row = 0, out.row_bytes
    stop = -(-out.shape[1] // stream.advance)
    for value, uses in readers.items():
        if value not in spans or spans[value][1] > last:
            continue
        v = graph.values[value]
        if v.alias is not None or v.accumulator:
            continue
        distance = 0
        height = v.shape[1]
        for i in {0, 1, stop // 2, stop - 2, stop - 1}:
            if 0 <= i < stop:
                written = min((i + 1) * stream.advance, out.shape[1]) * out_row
                needed = height
                for s, d, ahead in uses:
                    at = (i + ahead) * s.advance + s.lead  # all but the sink have read for this iteration when it writes
                    needed = min(needed, d.rows(max(at, 0), at + 1, height)[0])
                distance = max(distance, written - needed * v.row_bytes)
        best = max(best, v.bytes + out.bytes - max(align(distance) + v.bytes, out.bytes))
    return best


def _best(found: list[Columns], budget: int) -> tuple[int, list[Candidate]] | None:
    """Least cycles within the budget, and the segments that give them, ties by order; None when nothing fits."""
    cost = np.full(len(found) + 1, _INFINITE, np.int64)
    cost[0] = 0
    taken = [0] * len(found)
    for last, (first, _, memory, cycles) in enumerate(found):
        total = np.where(memory <= budget, cost[first] + cycles, _INFINITE)
        taken[last] = at = int(total.argmin())
        cost[last + 1] = min(total[at], _INFINITE)
    if cost[-1] >= _INFINITE:
        return None
    chosen: list[Candidate] = []
    end = len(found)
    while end:
        begin, rows, memory, cycles = found[end - 1][:, taken[end - 1]].tolist()
        chosen.append(Candidate(begin, end - 1, rows, memory, cycles))
        end = begin
    return int(cost[-1]), chosen[::-1]


def tile(
    graph: KernelGraph, target: Target, *, optimize: str = "default", scratch_budget: int | None = None
) -> list[Tiling]:
    """Tilings of the whole graph worth allocating, most promising first; with a budget, fast ones that should fit it.

    Example:
        >>> tiling, *others = tile(kernel_graph, targets.load("imxrt700"))
        >>> [(s.first, s.last) for s in tiling.segments]
    """
    costs = CostModel(graph, target)
    found = candidates(graph, costs, stream=optimize != "fast")
    budgets = sorted({size for _, _, memory, _ in found for size in memory.tolist()})
    structure = Structure.of(graph)
    if not budgets:
        return [Tiling([], ())]
    tried: dict[int, tuple[int, list[Candidate]] | None] = {}

    def best(at: int) -> tuple[int, list[Candidate]] | None:
        if at not in tried:
            tried[at] = _best(found, budgets[at])
        return tried[at]

    fastest = best(len(budgets) - 1)
    assert fastest is not None
    if optimize == "fast" and scratch_budget is None:
        return [Tiling(_segments(structure, fastest[1]), ())]
    limit = fastest[0] * SLACK[0] // SLACK[1] if scratch_budget is None else 1 << 62
    low, high = 0, len(budgets) - 1
    while low < high:
        middle = (low + high) // 2
        attempt = best(middle)
        if attempt is not None and attempt[0] <= limit:
            high = middle
        else:
            low = middle + 1
    if scratch_budget is None:
        chosen = _following(best, low, len(budgets) - 1)
    else:
        fitting = [at for at in range(low, len(budgets)) if budgets[at] <= scratch_budget]
        chosen = _distinct(best, [*reversed(fitting[-TRIES * TRIES :: TRIES]), low])
    points = tuple((budgets[at], p[0]) for at in sorted(tried) if (p := tried[at]) is not None)
    return [Tiling(_segments(structure, items), _pareto(points)) for items in chosen]


def _following(best: Callable[[int], tuple[int, list[Candidate]] | None], low: int, high: int) -> list[list[Candidate]]:
    """The first few different choices for growing budgets from `low` on.

    What is best for two budgets is best for all between them, ties going by order, so the next change is bisected.
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
    """The first few different choices along an order of budgets."""
    chosen: list[list[Candidate]] = []
    for at in order:
        attempt = best(at)
        if attempt is not None and attempt[1] not in chosen:
            chosen.append(attempt[1])
            if len(chosen) == TRIES:
                break
    return chosen


def _segments(structure: Structure, chosen: list[Candidate]) -> list[Segment]:
    return [
        whole(structure, item.last) if item.rows == 0 else segment_of(structure, item.first, item.last, item.rows)
        for item in chosen
    ]


def _pareto(points: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    kept: list[tuple[int, int]] = []
    for memory, cycles in points:
        if not kept or cycles < kept[-1][1]:
            kept.append((memory, cycles))
    return tuple(kept)
