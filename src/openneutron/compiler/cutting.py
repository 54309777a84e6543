"""Cuts a group that fits the memory in no schedule into several NeutronGraphs.

Between two graphs tensors are stored whole, and the inputs of a graph stay alive until it ends. So a cut costs the bytes that
cross it, and frees the tensors that are not needed any more:

    one graph      input ─ conv ─ pool ─ squeeze ─ expand ─ …      the input stays while `expand` needs the most
    two graphs     input ─ conv ─ pool ─ squeeze ┃ expand ─ …      cut where the least crosses

Dynamic programming over cut points in the order of L1 nodes finds the fewest crossing bytes for pieces that fit by estimate.
The estimate uses the segments of `candidates`, so it counts streaming. Weakness: it ignores fragmentation, and sharing of
memory at the borders. The caller compiles the pieces, and cuts again a piece that does not fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from openneutron.compiler.cost import CostModel
from openneutron.compiler.l1 import KernelGraph
from openneutron.compiler.plan.candidates import Columns, candidates, lifetimes
from openneutron.machine.targets import Target
from openneutron.microcode.encode import align

CALL_BYTES = 512  # cost of one more graph in crossing bytes: 1,500 cycles of a call at about 3 cycles per copied byte
POINTS = 40  # cut points considered at once; pieces that do not fit are cut again, at points of their own
TIGHTER = (9, 10)  # each further try aims at this share of the memory, because the estimate was too low
_ATTEMPTS = 6  # after six tries the aim is about half of the memory
_NEVER = 1 << 60


def cut_points(graph: KernelGraph, target: Target) -> list[int]:
    """Return where to cut a graph that does not fit: the first node of each piece, and the number of nodes.

    A node that fits in no piece is a piece of its own. A graph of several nodes is always cut, even if it seems to fit.

    Example:
        >>> cut_points(graph, targets.load("mcxn94x"))
        [0, 3, 38]
    """
    aim = target.sram_bytes
    bounds = [0, len(graph.nodes)]
    if len(graph.nodes) < 2:
        return bounds
    crossing = _Crossing.of(graph)
    found = candidates(graph, CostModel(graph, target), room=aim // 2)
    points = _points(crossing.bytes)
    for _ in range(_ATTEMPTS):
        bounds = _best(found, crossing, points, aim)
        if len(bounds) > 2:
            return bounds
        aim = aim * TIGHTER[0] // TIGHTER[1]
    return list(range(len(graph.nodes) + 1))


@dataclass(frozen=True)
class _Crossing:
    """The bytes that cross from before each node to it or later, and the size and live range of each stored value."""

    bytes: list[int]
    sizes: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]

    @classmethod
    def of(cls, graph: KernelGraph) -> _Crossing:
        spans = lifetimes(graph, with_ends=True)
        sizes = np.array([align(graph.values[root].stored_bytes) for root in spans], np.int64)
        first, last = (np.array([span[side] for span in spans.values()], np.int64) for side in (0, 1))
        bytes_at = [int(sizes[(first < at) & (last >= at)].sum()) for at in range(len(graph.nodes) + 1)]
        return cls(bytes_at, sizes, first, last)

    def bytes_held(self, begin: int, end: int) -> tuple[Columns, Columns]:
        """Return by node the bytes of a piece's inputs after their last use, and of its outputs before they are made."""
        nodes = np.arange(begin, end + 1)
        entering = (self.first < begin) & (self.last >= begin)
        leaving = (self.first >= begin) & (self.first < end) & (self.last >= end)
        dead = (self.last[entering, None] < nodes) * self.sizes[entering, None]
        unborn = (self.first[leaving, None] > nodes) * self.sizes[leaving, None]
        return dead.sum(0), unborn.sum(0)


def _points(crossing: list[int]) -> list[int]:
    """Return the cut points to consider: both ends, and local minima of the crossing bytes."""
    inner = range(1, len(crossing) - 1)
    lowest = [p for p in inner if crossing[p] <= crossing[p - 1] and crossing[p] <= crossing[p + 1]]
    if len(inner) <= POINTS:
        lowest = list(inner)
    elif len(lowest) > POINTS:
        step = len(crossing) / POINTS
        windows: dict[int, int] = {}
        for p in lowest:
            window = int(p / step)
            windows[window] = min(windows.get(window, p), p, key=lambda at: (crossing[at], at))
        lowest = sorted(windows.values())
    return [0, *lowest, len(crossing) - 1]


def _need(found: list[Columns], crossing: _Crossing, begin: int, end: int) -> int:
    """Estimate the bytes of nodes [begin, end) as one graph, with inputs, outputs and tensors that other graphs need."""
    dead, unborn = crossing.bytes_held(begin, end)
    peak = np.full(end - begin + 1, _NEVER, np.int64)
    peak[0] = 0
    for at in range(begin, end):
        first, _, _, memory, _ = found[at]
        inside = first >= begin
        starts = first[inside] - begin
        held = np.maximum(peak[starts], memory[inside] + dead[starts] + unborn[at - begin])
        peak[at + 1 - begin] = held.min()
    return int(peak[-1])


def _best(found: list[Columns], crossing: _Crossing, points: list[int], aim: int) -> list[int]:
    """Return the bounds of pieces: fewest nodes in pieces that do not fit `aim`, then fewest crossing bytes."""
    cost: dict[int, tuple[int, int]] = {points[0]: (0, 0)}
    before: dict[int, int] = {}
    for at, end in enumerate(points[1:], start=1):
        best: tuple[int, int] | None = None
        for earlier in range(at - 1, -1, -1):
            begin = points[earlier]
            outside = crossing.bytes[end] + CALL_BYTES
            total = (cost[begin][0], cost[begin][1] + outside)
            if best is not None and total >= best:
                continue
            ends = max(crossing.bytes[begin], crossing.bytes[end])
            if ends > aim or _need(found, crossing, begin, end) > aim:
                if earlier != at - 1:
                    continue  # only the smallest piece may exceed the aim
                total = (total[0] + end - begin, total[1])
            if best is None or total < best:
                best, before[end] = total, begin
        assert best is not None
        cost[end] = best
    bounds = [points[-1]]
    while bounds[-1]:
        bounds.append(before[bounds[-1]])
    return bounds[::-1]
