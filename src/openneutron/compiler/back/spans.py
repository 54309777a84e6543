"""Spans: the contents of a region's bytes, stored as a few sorted intervals instead of one entry per byte."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from openneutron.errors import InternalError


class Spans:
    """The contents of one region of `size` bytes; owners are opaque numbers."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._ends: list[int] = []
        self._runs: list[tuple[int, int, int]] = []  # start, owner, position of byte 0 of the region in the owner

    def check(self, at: int, length: int) -> None:
        """Raise unless [at, at + length) lies inside."""
        if at < 0 or at + length > self.size:
            raise InternalError(f"bytes {at} to {at + length} lie outside a region of {self.size}")

    def put(self, at: int, length: int, owner: int, position: int) -> None:
        """Assign [at, at + length) to the owner's bytes from `position` on, replacing older contents."""
        self.check(at, length)
        if length == 0:
            return
        end, origin = at + length, position - at
        low = bisect_right(self._ends, at)
        high = bisect_left(self._runs, end, low, key=lambda run: run[0])
        ends, runs = [], []
        if low < high and self._runs[low][0] < at:
            runs.append(self._runs[low])
            ends.append(at)
        elif low and self._ends[low - 1] == at and self._runs[low - 1][1:] == (owner, origin):
            low -= 1
            at = self._runs[low][0]
        runs.append((at, owner, origin))
        ends.append(end)
        if low < high and self._ends[high - 1] > end:
            _, other, shift = self._runs[high - 1]
            runs.append((end, other, shift))
            ends.append(self._ends[high - 1])
        self._runs[low:high], self._ends[low:high] = runs, ends

    def holds(self, at: int, length: int, owner: int, position: int) -> bool:
        """True when [at, at + length) holds exactly the owner's bytes from `position` on."""
        self.check(at, length)
        end, wanted = at + length, (owner, position - at)
        index = bisect_right(self._ends, at)
        while at < end:
            if index == len(self._runs) or self._runs[index][0] > at or self._runs[index][1:] != wanted:
                return False
            at, index = self._ends[index], index + 1
        return True

    def runs(self, at: int, length: int) -> list[tuple[int, int, int, int]]:
        """(start, length, owner, position) of everything known in [at, at + length)."""
        self.check(at, length)
        found, end = [], at + length
        index = bisect_right(self._ends, at)
        while index < len(self._runs) and self._runs[index][0] < end:
            start, owner, origin = self._runs[index]
            low, high = max(start, at), min(self._ends[index], end)
            found.append((low, high - low, owner, low + origin))
            index += 1
        return found
