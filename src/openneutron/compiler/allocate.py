"""Allocate: offsets for scratch and prefetch buffers, rectangles of time x bytes.

Best of several greedy orders, each placing a buffer at the lowest offset that is free during its life (best-fit order
is a matter of the sort). The largest sum of live bytes is a lower bound: reaching it proves the result optimal.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from openneutron.compiler.l2 import Buffer, TaskList
from openneutron.microcode.table import Region

_ORDERS: tuple[Callable[[Buffer], tuple[int, ...]], ...] = (
    lambda b: (-b.size, b.first, b.last),
    lambda b: (-b.size * (b.last - b.first + 1), -b.size, b.first),
    lambda b: (b.first, -b.size, b.last),
    lambda b: (-(b.last - b.first), -b.size, b.first),
)


def _lower_bound(buffers: list[Buffer]) -> int:
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


def _place(buffers: list[Buffer], order: list[int]) -> tuple[int, list[int]]:
    """Lowest free offset for each buffer in turn; (height reached, offsets)."""
    offsets = [0] * len(buffers)
    first = np.zeros(len(buffers), np.int64)
    last = np.zeros(len(buffers), np.int64)
    low = np.zeros(len(buffers), np.int64)
    high = np.zeros(len(buffers), np.int64)
    top = 0
    for count, at in enumerate(order):
        b = buffers[at]
        clash = np.flatnonzero((first[:count] <= b.last) & (last[:count] >= b.first))
        offset = 0
        for index in clash[np.argsort(low[clash], kind="stable")]:
            if low[index] >= offset + b.size:
                break
            offset = max(offset, int(high[index]))
        offsets[at] = offset
        first[count], last[count], low[count], high[count] = b.first, b.last, offset, offset + b.size
        top = max(top, offset + b.size)
    return top, offsets


def allocate(tasks: TaskList) -> TaskList:
    """Set the offsets of scratch and prefetch buffers and the totals of the task list."""
    for region in (Region.SCRATCH, Region.PREFETCH):
        chosen = [b for b in tasks.buffers if b.region is region and b.first >= 0]
        bound = _lower_bound(chosen)
        best: tuple[int, list[int]] = (0, [])
        for key in _ORDERS:
            order = sorted(range(len(chosen)), key=lambda at: (*key(chosen[at]), at))  # noqa: B023
            attempt = _place(chosen, order)
            if not best[1] or attempt[0] < best[0]:
                best = attempt
            if best[0] == bound:
                break
        for b, offset in zip(chosen, best[1], strict=True):
            b.offset = offset
        if region is Region.SCRATCH:
            tasks.scratch_bytes, tasks.lower_bound = best[0], bound
        else:
            tasks.prefetch_bytes = best[0]
    return tasks
