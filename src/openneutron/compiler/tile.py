"""Tile: choose which runs of nodes become streamed segments and how many rows each call makes.

Dynamic programming over the cut points of the topological order: for a budget of scratch bytes, the least cycles over
segments x stripe heights whose memory fits. Cycles never grow with the budget, so the smallest budget that costs at most
`SLACK` more than the fastest schedule is found by bisection. Weakness: stripes are uniform per segment, and memory is
counted as the sum of live bytes, which the allocator may exceed by fragmentation.
"""

from __future__ import annotations

from dataclasses import dataclass

from openneutron.compiler.cost import CostModel
from openneutron.compiler.l1 import KernelGraph
from openneutron.compiler.segments import Segment, Stream, Structure, extend, segment_of, whole
from openneutron.errors import UnsupportedError
from openneutron.microcode.encode import align
from openneutron.targets import Target

MAX_SEGMENT = 32  # nodes; longer segments were never chosen on the reference models (compiler-notes §1)
# Pixels per call worth trying: below 16 the call overhead dominates, above 512 nothing changes.
STRIPE_PIXELS = (16, 32, 64, 128, 256, 512)
STRIPE_ROWS = (1, 2, 4, 8)
SLACK = (105, 100)  # memory may cost at most 5 % of the cycles of the fastest schedule


@dataclass(frozen=True)
class Candidate:
    """One way to run nodes [first, last]: scratch bytes while it runs, and cycles."""

    first: int
    last: int
    rows: int  # 0: one node on whole tensors
    memory: int
    cycles: int


@dataclass(frozen=True)
class Tiling:
    """The chosen segments, and the (scratch bytes, cycles) points that were on offer."""

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
    rows = {*STRIPE_ROWS, *(-(-pixels // max(width, 1)) for pixels in STRIPE_PIXELS)}
    return [*sorted(r for r in rows if r < height), height]


def candidates(graph: KernelGraph, costs: CostModel, *, stream: bool = True) -> list[Candidate]:
    """Every segment worth considering, grouped by its last node, in a fixed order."""
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
    found: list[Candidate] = []
    for last, node in enumerate(graph.nodes):
        value = graph.values[node.output]
        own = sum(sizes[r] for r in born[last]) + align(node.workspace)
        found.append(Candidate(last, last, 0, alive_before[last] + own, costs.cycles(last, value.shape[1])))
        if not stream or node.demand is None or value.shape[0] != 1:
            continue
        for rows in _stripe_heights(value.shape[1], value.shape[2]):
            found += _grow(structure, costs, spans, sizes, alive_before, last, rows)
    return found


def _grow(
    structure: Structure, costs: CostModel, spans: dict[int, tuple[int, int]], sizes: dict[int, int],
    alive_before: list[int], last: int, rows: int,
) -> list[Candidate]:  # fmt: skip
    """Segments that end at `last` with this stripe height, grown backwards one node at a time."""
    graph = structure.graph
    found: list[Candidate] = []
    streams: dict[int, Stream] = {}
    held, cycles = 0, 0
    for first in range(last, max(last - MAX_SEGMENT, -1), -1):
        made = extend(structure, streams, first, last, rows)
        if made is None:
            break
        node = graph.nodes[first]
        streams[node.output] = made
        value = graph.values[node.output]
        root = graph.root(node.output)
        if made.ring:
            held += align(made.ring * value.row_bytes)
        elif spans.get(root, (-1, -1))[0] == first:
            held += sizes[root]
        held += align(node.workspace)
        cycles += costs.striped(first, value.shape[1], made.advance, made.lead)
        if first == last and made.advance >= value.shape[1]:
            continue  # the whole-tensor candidate
        found.append(Candidate(first, last, rows, alive_before[first] + held, cycles))
    return found


def _best(n: int, found: list[Candidate], budget: int) -> tuple[int, list[Candidate]] | None:
    """Least cycles within the budget, and the segments that give them; None when nothing fits."""
    infinite = 1 << 62
    cost = [0] + [infinite] * n
    taken: list[Candidate | None] = [None] * (n + 1)
    for item in found:  # ordered by last node, so cost[item.first] is final
        if item.memory > budget or cost[item.first] >= infinite:
            continue
        total = cost[item.first] + item.cycles
        if total < cost[item.last + 1]:
            cost[item.last + 1], taken[item.last + 1] = total, item
    if cost[n] >= infinite:
        return None
    chosen: list[Candidate] = []
    at = n
    while at:
        item_taken = taken[at]
        assert item_taken is not None
        chosen.append(item_taken)
        at = item_taken.first
    return cost[n], chosen[::-1]


def tile(graph: KernelGraph, target: Target, *, optimize: str = "default", scratch_budget: int | None = None) -> Tiling:
    """Segments for the whole graph; with a budget, the fastest ones that fit it.

    Example:
        >>> tiling = tile(kernel_graph, targets.load("imxrt700"))
        >>> [(s.first, s.last) for s in tiling.segments]
    """
    costs = CostModel(graph, target)
    n = len(graph.nodes)
    found = candidates(graph, costs, stream=optimize != "fast")
    budgets = sorted({item.memory for item in found})
    fastest = _best(n, found, budgets[-1]) if budgets else (0, [])
    assert fastest is not None
    if scratch_budget is not None:
        chosen = _best(n, found, scratch_budget)
        if chosen is None:
            least = next(b for b in budgets if _best(n, found, b) is not None)
            raise UnsupportedError(
                f"the smallest schedule needs {least} bytes of scratch, {least - scratch_budget} more than the budget",
                hint="lower the input resolution, or raise --fit",
            )
    elif optimize == "fast":
        chosen = fastest
    else:
        limit = fastest[0] * SLACK[0] // SLACK[1]
        low, high = 0, len(budgets) - 1
        while low < high:
            middle = (low + high) // 2
            attempt = _best(n, found, budgets[middle])
            if attempt is not None and attempt[0] <= limit:
                high = middle
            else:
                low = middle + 1
        chosen = (_best(n, found, budgets[low]) if budgets else None) or fastest
    structure = Structure.of(graph)
    segments = [
        whole(structure, item.last) if item.rows == 0 else segment_of(structure, item.first, item.last, item.rows)
        for item in chosen[1]
    ]
    points = tuple((b, p[0]) for b in budgets[:: max(len(budgets) // 16, 1)] if (p := _best(n, found, b)) is not None)
    return Tiling(segments, _pareto(points))


def _pareto(points: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    kept: list[tuple[int, int]] = []
    for memory, cycles in points:
        if not kept or cycles < kept[-1][1]:
            kept.append((memory, cycles))
    return tuple(kept)
