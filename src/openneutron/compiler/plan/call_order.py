"""The order of calls in one iteration of a segment whose nodes make their rows in several calls.

With strides downstream one iteration makes many rows of the tensors upstream. If each part is made just before the call that
needs it, fewer rows are alive at once:

    conv 4 rows, pool 2 rows, conv 2 rows  →  conv 2, pool 1, conv 2, pool 1, conv 2

Rows count from the start of an iteration. All iterations have the same order; calls clip their rows to the tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from openneutron.compiler.l1 import RowDemand


class Reader(NamedTuple):
    """A node that reads a value: its rows per call, its lead, and the rows it needs."""

    node: int
    rows: int
    lead: int
    demand: RowDemand

    def oldest(self, calls: int) -> int:
        """Return the first row that is still needed after this many calls of the iteration."""
        d = self.demand
        return (self.lead + calls * self.rows) * d.stride // d.divide - d.before

    def newest(self, calls: int) -> int:
        """Return the end of the rows that this many calls of the iteration need."""
        d = self.demand
        return (self.lead + calls * self.rows - 1) * d.stride // d.divide - d.before + d.extent


@dataclass
class CallOrder:
    """Calls (node, part) in order. `live` are the bytes of transient rows during each call, `between` those before it."""

    calls: list[tuple[int, int]] = field(default_factory=list)
    live: list[int] = field(default_factory=list)
    between: list[int] = field(default_factory=list)

    def sink(self, node: int) -> None:
        """Start with the last node, in one call."""
        self.calls, self.live, self.between = [(node, 0)], [0], [0]

    def weave(
        self, node: int, parts: int, rows: int, lead: int, readers: Sequence[Reader]
    ) -> tuple[int, tuple[int, ...]]:
        """Insert the calls of a node, each just before the first reader that needs it.

        Returns the most rows alive at once, and the parts that are made when none is alive.
        """
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
        copied = 0  # calls that are in the new order already
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
        """Count the bytes of transient rows: from each part in `fresh` to the last read before the next such part.

        With `handed_on` the last reader takes the bytes over, so they do not count at its call.
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
        """Count bytes that each call of a node needs while it runs (a workspace)."""
        for at, (called, _) in enumerate(self.calls):
            if called == node:
                self.live[at] += size

    def _add(self, begin: int, end: int, size: int) -> None:
        if begin >= 0:
            self.live[begin : end + 1] = [held + size for held in self.live[begin : end + 1]]
            self.between[begin + 1 : end + 1] = [held + size for held in self.between[begin + 1 : end + 1]]
