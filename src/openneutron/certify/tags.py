"""Tags: what the checker knows about a byte, either its value or "byte i of this computed tensor".

Tags 0 to 255 are bytes of that value. Larger ones are numbered in blocks, one block per computed tensor. A table applied to
each byte of a block gives a block of the same size. Chains of tables are combined into one table on the first block, so it
does not matter how they were split or joined.
"""

from __future__ import annotations

import hashlib
import sys
from array import array
from bisect import bisect_right
from collections.abc import Hashable
from typing import Any

NOTHING = 256  # memory that was never written
MOVING = 257  # memory that a running copy writes
_FIRST = 1 << 16
_IDENTITY = bytes(range(256))

Tags = array  # of 'Q'


def constant(data: Any) -> array[int]:
    """Return the tags of known bytes."""
    given = bytes(data)
    spread = bytearray(8 * len(given))
    spread[0 if sys.byteorder == "little" else 7 :: 8] = given
    made = array("Q")
    made.frombytes(spread)
    return made


def fill_tags(value: int, count: int) -> array[int]:
    """Return `count` copies of one tag."""
    return array("Q", [value]) * count


def value_of(tags: array[int]) -> bytes | None:
    """Return the bytes if all are known, otherwise None."""
    low = tags.tobytes()[0 if sys.byteorder == "little" else 7 :: 8]
    return low if constant(low) == tags else None


def digest(tags: array[int]) -> bytes:
    """Return a hash of these tags."""
    return hashlib.sha256(memoryview(tags).cast("B")).digest()


class Symbols:
    """Numbers blocks of tags; a key always gives the same block."""

    def __init__(self) -> None:
        self._next = _FIRST
        self._bases: list[int] = []
        self._ends: list[int] = []
        self._known: dict[Hashable, int] = {}
        self._origins: dict[int, tuple[int, bytes]] = {}  # base → (base of the block it comes from, table)

    def block(self, key: Hashable, size: int) -> int:
        """Return the first tag of the block for `key`, allocating it on first use."""
        base = self._known.get(key)
        if base is None:
            base = self._next
            self._known[key] = base
            self._bases.append(base)
            self._ends.append(base + size)
            self._next += size + 1
        return base

    def tags(self, key: Hashable, size: int) -> array[int]:
        """Return all tags of the block for `key`."""
        base = self.block(key, size)
        return array("Q", range(base, base + size))

    def holder(self, tag: int) -> tuple[int, int]:
        """Return the first tag and the end of the block that contains a tag."""
        at = bisect_right(self._bases, tag) - 1
        return self._bases[at], self._ends[at]

    def apply_table(self, tags: array[int], table: bytes) -> array[int]:
        """Return the tags of table[byte] for each byte."""
        if table == _IDENTITY:
            return tags
        made = array("Q")
        at, count = 0, len(tags)
        while at < count:
            tag = tags[at]
            if tag < 256:
                made.append(table[tag])
                at += 1
                continue
            if tag < _FIRST:
                made.append(tag)
                at += 1
                continue
            base, end = self.holder(tag)
            shift = self._apply_to_block(base, end, table) - base
            run = self._run(tags, at, min(end - tag, count - at))
            made.extend(range(tag + shift, tag + shift + run))
            at += run
        return made

    def elements(self, tags: array[int], at: int, given: int, made: int, meaning: Hashable) -> tuple[int, int]:
        """Return the first tag of a function of the element at `at`, and how many elements from there on are consecutive.

        Elements whose bytes are neighbours in one block share a block of results; any other element has one of its own.
        """
        tag = tags[at]
        if tag >= _FIRST:
            base, end = self.holder(tag)
            run = self._run(tags, at, min(end - tag, len(tags) - at)) // given
            if run:
                number, phase = divmod(tag - base, given)
                block = self.block(("elements", meaning, base, phase), (end - base) // given * made)
                return block + number * made, run
        return self.block(("element", meaning, *tags[at : at + given]), made), 1

    def _run(self, tags: array[int], at: int, most: int) -> int:
        """Return how many tags from `at` on are consecutive numbers."""
        first = tags[at]
        ends = most > 1 and tags[at + most - 1] == first + most - 1
        if ends and tags[at : at + most] == array("Q", range(first, first + most)):
            return most
        run = 1
        while run < most and tags[at + run] == first + run:
            run += 1
        return run

    def _apply_to_block(self, base: int, end: int, table: bytes) -> int:
        origin, before = self._origins.get(base, (base, _IDENTITY))
        both = bytes(table[one] for one in before)
        if both == _IDENTITY:
            return origin
        made = self.block(("through", origin, both), end - base)
        self._origins[made] = (origin, both)
        return made
