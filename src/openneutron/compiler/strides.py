"""Nested loops over bytes with a stride on each side, and merging them so that the innermost is as long as possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Loop:
    """`count` steps of `read` bytes in the input and `write` bytes in the output."""

    count: int
    read: int
    write: int


def dense(shape: Sequence[int]) -> list[int]:
    """Byte strides of a densely stored tensor of 8-bit elements.

    Example:
        >>> dense((2, 3, 4))
        [12, 4, 1]
    """
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return strides[::-1]


def merged(loops: Sequence[Loop]) -> list[Loop]:
    """The same copy with fewer loops: outer loops first, loops of one step dropped, continuing ones joined.

    Example:
        >>> merged([Loop(2, 12, 12), Loop(1, 99, 99), Loop(3, 4, 4), Loop(4, 1, 1)])
        [Loop(count=24, read=1, write=1)]
    """
    joined: list[Loop] = []
    for loop in sorted((one for one in loops if one.count > 1), key=lambda one: -one.write):
        if joined:
            outer = joined[-1]
            if outer.read == loop.count * loop.read and outer.write == loop.count * loop.write:
                joined[-1] = Loop(outer.count * loop.count, loop.read, loop.write)
                continue
        joined.append(loop)
    return joined or [Loop(1, 1, 1)]


def is_plain(loops: Sequence[Loop], size: int) -> bool:
    """True when merged loops copy `size` bytes from beginning to end unchanged."""
    return len(loops) == 1 and (loops[0].count, loops[0].read, loops[0].write) == (size, 1, 1)
