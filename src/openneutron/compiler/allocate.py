"""Allocate: offsets for scratch and prefetch buffers, rectangles of time x bytes.

Best of several greedy orders, each placing a buffer at the lowest offset that is free during its life. A segment's dying
input and its output may share bytes as far as `Overlap` allows (diagonal placement, as in DMO and vMCU). The largest sum of
live bytes is a lower bound where nothing overlaps: reaching it proves the result optimal. `--optimize max` lets CP-SAT
improve on greedy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from openneutron.compiler.l2 import Buffer, Overlap, TaskList
from openneutron.compiler.solve import solve, solver_version
from openneutron.microcode.table import Region

_ORDERS: tuple[Callable[[Buffer], tuple[int, ...]], ...] = (
    lambda b: (-b.size, b.first, b.last),
    lambda b: (-b.size * (b.last - b.first + 1), -b.size, b.first),
    lambda b: (b.first, -b.size, b.last),
    lambda b: (-b.last, -b.size, b.first),
    lambda b: (-(b.last - b.first), -b.size, b.first),
)


def lower_bound(buffers: Sequence[Buffer]) -> int:
    """Largest sum of bytes alive at one position."""
    events: dict[int, int] = {}
    for b in buffers:
        events[b.first] = events.get(b.first, 0) + b.size
        events[b.last + 1] = events.get(b.last + 1, 0) - b.size
    most = alive = 0
    for position in sorted(events):
        alive += events[position]
        most = max(most, alive)
    return most


class _Pairs:
    """Overlaps by the two buffers they join."""

    def __init__(self, overlaps: Sequence[Overlap], index: dict[int, int]) -> None:
        self.of: dict[tuple[int, int], Overlap] = {}
        for o in overlaps:
            if o.dying in index and o.born in index:
                dying, born = index[o.dying], index[o.born]
                self.of[dying, born] = self.of[born, dying] = replace(o, dying=dying, born=born)

    def forbidden(self, placing: int, size: int, other: int, low: int, high: int) -> tuple[int, int]:
        """Offsets strictly between these two bounds clash with buffer `other` at [low, high)."""
        pair = self.of.get((placing, other))
        if pair is None:
            return low - size, high
        if placing == pair.born:
            return (low - size, high + pair.distance - size) if pair.upward else (low - pair.distance, high)
        return (high - pair.distance - size, high) if pair.upward else (low - size, low + pair.distance)


def _place(buffers: Sequence[Buffer], order: list[int], pairs: _Pairs) -> tuple[int, list[int]]:
    """Lowest free offset for each buffer in turn; (height reached, offsets)."""
    offsets = [0] * len(buffers)
    first, last = np.zeros(len(buffers), np.int64), np.zeros(len(buffers), np.int64)
    top = 0
    for count, at in enumerate(order):
        b = buffers[at]
        clash = np.flatnonzero((first[:count] <= b.last) & (last[:count] >= b.first))
        blocked: list[tuple[int, int]] = []
        allowed: list[int] = []
        for c in clash:
            other = order[c]
            low = offsets[other]
            blocked.append(pairs.forbidden(at, b.size, other, low, low + buffers[other].size))
            pair = pairs.of.get((at, other))
            if pair is not None and pair.exact:
                allowed.append(low)
        blocked.sort()
        offset = _lowest(blocked)
        for candidate in sorted(allowed):
            clear = sum(low < candidate < high for low, high in blocked) == 1  # only the partner itself
            if candidate < offset and clear:
                offset = candidate
                break
        offsets[at] = offset
        first[count], last[count] = b.first, b.last
        top = max(top, offset + b.size)
    return top, offsets


def _lowest(blocked: list[tuple[int, int]]) -> int:
    """Smallest offset from 0 on that lies in none of the open intervals, which are sorted by their lower ends."""
    offset = 0
    for low, high in blocked:
        if low >= offset:
            break
        offset = max(offset, high)
    return offset


def _region(buffers: list[Buffer], overlaps: Sequence[Overlap], index: dict[int, int], exact: bool) -> tuple[int, int]:
    """Place one region's buffers; (height, lower bound without overlaps)."""
    bound = lower_bound(buffers)
    best: tuple[int, list[int]] | None = None
    for pairs in {bool(overlaps): _Pairs(overlaps, index), False: _Pairs((), {})}.values():
        for key in _ORDERS:
            order = sorted(range(len(buffers)), key=lambda at: (*key(buffers[at]), at))
            attempt = _place(buffers, order, pairs)
            if best is None or attempt[0] < best[0]:
                best = attempt
            if not overlaps and best[0] == bound:
                break
    assert best is not None
    if exact:
        best = solve(buffers, _Pairs(overlaps, index).of, best[1], best[0])
    for b, offset in zip(buffers, best[1], strict=True):
        b.offset = offset
    return best[0], bound


def allocate(tasks: TaskList, *, exact: bool = False) -> TaskList:
    """Set the offsets of scratch and prefetch buffers and the totals of the task list; `exact` asks the solver too."""
    for region in (Region.SCRATCH, Region.PREFETCH):
        chosen = [at for at, b in enumerate(tasks.buffers) if b.region is region and b.first >= 0]
        index = {at: i for i, at in enumerate(chosen)}
        height, bound = _region([tasks.buffers[at] for at in chosen], tasks.overlaps, index, exact)
        if region is Region.SCRATCH:
            tasks.scratch_bytes, tasks.lower_bound = height, bound
        else:
            tasks.prefetch_bytes = height
    if exact:
        tasks.solver_version = solver_version()
    return tasks
