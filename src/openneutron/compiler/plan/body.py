"""Body: the order of calls in one iteration of a segment whose nodes make their rows in several calls.

With strides downstream an iteration makes many rows of the tensors upstream. Made in parts, each pulled by the call that
needs it, fewer of them are held at once:

    conv 4 rows, pool 2 rows, conv 2 rows  →  conv 2, pool 1, conv 2, pool 1, conv 2

Rows count from the start of the iteration; the pattern is the same in all of them, and calls cut their own rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from openneutron.compiler.l1 import RowDemand
from openneutron.records import dataclass, field


class Reader(NamedTuple):
    """A call's node that reads a value: its rows per call and lead, and the rows it needs."""

    node: int
    rows: int
    lead: int
    demand: RowDemand

    def oldest(self, calls: int) -> int:
        """The first row needed once this many calls of the iteration are done."""
        d = self.demand
        return (self.lead + calls * self.rows) * d.stride // d.divide - d.before

    def newest(self, calls: int) -> int:
        """The row behind the last one needed by that many calls of the iteration."""
        d = self.demand
        return (self.lead + calls * self.rows - 1) * d.stride // d.divide - d.before + d.extent


@dataclass
class Body:
    """Calls (node, part) in order. `live` are bytes of passing rows at each call, `between` those kept up to it."""

    calls: list[tuple[int, int]] = field(default_factory=list)
    live: list[int] = field(default_factory=list)
    between: list[int] = field(default_factory=list)

    def sink(self, node: int) -> None:
        """Start with the last node, in one call."""
        self.calls, self.live, self.between = [(node, 0)], [0], [0]

    def weave(
        self, node: int, parts: int, rows: int, lead: int, readers: Sequence[Reader]
    ) -> tuple[int, tuple[int, ...]]:
        """Put the calls of a node where its readers pull them; returns the rows held at most, and the parts that start with
        nothing held."""
        reads: dict[int, list[Reader]] = {}
        for reader in readers:
            reads.setdefault(reader.node, []).append(reader)
        done = dict.fromkeys(reads, 0)
        calls: list[tuple[int, int]] = []
        live: list[int] = []
        between: list[int] = []
        fresh: list[int] = []
        made, ring = 0, 0
        oldest = min(reader.oldest(0) for reader in readers)
        copied = 0  # calls so far that stand in the new order
        for at, (called, _) in enumerate(self.calls):
            pulling = reads.get(called)
            if pulling is None:
                continue
            count = done[called] + 1
            needed = max([reader.newest(count) for reader in pulling]) - lead
            wanted = min(-(-needed // rows), parts)
            if made < wanted:
                calls += self.calls[copied:at]
                live += self.live[copied:at]
                between += self.between[copied:at]
                copied = at
            while made < wanted:
                if lead + made * rows <= oldest:
                    fresh.append(made)
                calls.append((node, made))
                live.append(self.between[at])
                between.append(self.between[at])
                made += 1
                ring = max(ring, lead + made * rows - oldest)
            done[called] = count
            oldest = min([reader.oldest(done[reader.node]) for reader in readers])
        assert made == parts, "the last part is pulled by the reader that leads the most"
        self.calls = calls + self.calls[copied:]
        self.live, self.between = live + self.live[copied:], between + self.between[copied:]
        return ring, tuple(fresh)

    def hold(self, node: int, readers: set[int], fresh: Sequence[int], size: int, *, handed_on: bool = False) -> None:
        """Count passing rows: from each part that starts anew to the last reading before the next such part.

        What is `handed_on` belongs to its reader from that call on.
        """
        starts = set(fresh)
        begin = end = -1
        for at, (called, part) in enumerate(self.calls):
            if called == node and part in starts:
                self._add(begin, end - handed_on, size)
                begin = at
            elif called in readers:
                end = at
        self._add(begin, end - handed_on, size)

    def use(self, node: int, size: int) -> None:
        """Count bytes that each call of a node needs only while it runs."""
        for at, (called, _) in enumerate(self.calls):
            if called == node:
                self.live[at] += size

    def _add(self, begin: int, end: int, size: int) -> None:
        if begin >= 0:
            self.live[begin : end + 1] = [held + size for held in self.live[begin : end + 1]]
            self.between[begin + 1 : end + 1] = [held + size for held in self.between[begin + 1 : end + 1]]
