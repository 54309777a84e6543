"""Nested loops over elements with a stride on each side, and merging them so that the innermost is as long as possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Loop:
    """`count` steps of `read` elements in the input and `write` elements in the output."""

    count: int
    read: int
    write: int


def dense(shape: Sequence[int]) -> list[int]:
    """Strides of a densely stored tensor, in elements.

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


def merge_loops(loops: Sequence[Loop]) -> list[Loop]:
    """The same copy with fewer loops: outer loops first, loops of one step dropped, continuing ones joined.

    Example:
        >>> merge_loops([Loop(2, 12, 12), Loop(1, 99, 99), Loop(3, 4, 4), Loop(4, 1, 1)])
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
    """True when merged loops copy `size` elements from beginning to end unchanged."""
    return len(loops) == 1 and (loops[0].count, loops[0].read, loops[0].write) == (size, 1, 1)


def compose_loops(first: Sequence[Loop], second: Sequence[Loop]) -> list[Loop] | None:
    """The loops of `second` reading what `first` read, None where no loops do that.

    `first` must write its whole output, each element once. The digits of an output element's number, in the radices of
    `first`'s loops, are then its loops' counters; a loop of `second` that runs through several digits is split.

    Example:
        >>> flip = [Loop(2, 1, 3), Loop(3, 2, 1)]
        >>> compose_loops(flip, [Loop(3, 1, 2), Loop(2, 3, 1)])
        [Loop(count=3, read=2, write=2), Loop(count=2, read=1, write=1)]
    """
    digits = sorted((loop for loop in first if loop.count > 1), key=lambda one: one.write)
    reached = 1
    for digit in digits:
        if digit.write != reached:
            return None
        reached *= digit.count
    loops: list[Loop] = []
    ahead = 0  # how far inner loops of `second` reach: an outer one that steps less would carry into its digits
    for loop in sorted((one for one in second if one.count > 1), key=lambda one: one.read):
        if loop.read < 0 or (loop.read and loop.read <= ahead):
            return None
        ahead += loop.read * (loop.count - 1)
        parts = _split(loop, digits) if loop.read else [loop]
        if parts is None:
            return None
        loops += parts
    return sorted(loops, key=lambda one: -one.write)


def _split(loop: Loop, digits: Sequence[Loop]) -> list[Loop] | None:
    """A loop over output elements as loops over input elements, one for each digit that it runs through."""
    parts: list[Loop] = []
    count, read, write = loop.count, loop.read, loop.write
    while count > 1:
        digit = next((one for one in digits if one.write <= read < one.write * one.count), None)
        if digit is None or read % digit.write:
            return None
        step = read // digit.write
        room = min(count, digit.count // step)
        if (room < count and digit.count % step) or count % room or room < 2:
            return None
        parts.append(Loop(room, step * digit.read, write))
        count, read, write = count // room, read * room, write * room
    return parts
