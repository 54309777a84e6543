"""Optimal placements of a few buffers by brute force, to compare allocators with."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from openneutron.compiler.l2 import Buffer, Overlap


def alive_together(a: Buffer, b: Buffer) -> bool:
    return a.first <= b.last and b.first <= a.last


def clash(buffers: Sequence[Buffer], overlaps: Sequence[Overlap], i: int, j: int) -> bool:
    """Whether two placed buffers share bytes that they may not share."""
    a, b = buffers[i], buffers[j]
    if not alive_together(a, b) or a.offset + a.size <= b.offset or b.offset + b.size <= a.offset:
        return False
    for pair in overlaps:
        if {pair.dying, pair.born} == {i, j}:
            dying, born = buffers[pair.dying], buffers[pair.born]
            if pair.exact and born.offset == dying.offset:
                return False
            if pair.upward:
                return born.offset + born.size < dying.offset + dying.size + pair.distance
            return born.offset + pair.distance > dying.offset
    return True


def least_height(buffers: Sequence[Buffer]) -> int:
    """The least bytes that hold all buffers without overlaps.

    Any placement, compacted, is that of some order in which each buffer takes the lowest offset that is free.
    """
    best = sum(b.size for b in buffers)
    for order in permutations(range(len(buffers))):
        placed: list[tuple[int, int]] = []  # buffer, offset
        for at in order:
            taken = sorted((low, low + buffers[n].size) for n, low in placed if alive_together(buffers[n], buffers[at]))
            offset = 0
            for low, high in taken:
                if low - offset >= buffers[at].size:
                    break
                offset = max(offset, high)
            placed.append((at, offset))
        best = min(best, max(low + buffers[n].size for n, low in placed))
    return best
