"""The scratch bytes of a segment, counted while it grows backwards from its last node.

Some bytes are alive in every iteration: rings that keep rows, whole tensors, constants copied before use. Others are alive only
around some calls: rows that are used within the iteration, and workspaces.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from openneutron.compiler.plan.call_order import CallOrder
from openneutron.compiler.plan.segments import Stream, Structure, slot_of
from openneutron.microcode.encode import align


@dataclass
class Footprint:
    """Bytes so far. With a `body` a node has several calls per iteration, and bytes are counted at each of them."""

    structure: Structure
    body: CallOrder | None
    begun: int  # the first node that writes a part of rows held here: no segment can begin behind it
    steady: int = 0
    constants: int = 0
    _around: dict[int, int] = field(default_factory=dict)  # node → bytes held only around its call
    _most: int = 0
    _joined: set[int] = field(default_factory=set)  # values whose rows several nodes fill

    def hold_ring(self, streams: dict[int, Stream], value: int, row_bytes: list[int]) -> None:
        """Count the ring of a value whose node was put in front; `row_bytes` has the bytes of a row of every value."""
        made = streams[value]
        root = self.structure.joined.get(value)
        if root is not None:
            self.steady += 0 if root in self._joined else align(made.ring * row_bytes[root])
            self.begun = min(self.begun, self.structure.begun[root])
            self._joined.add(root)
            return
        size = align(made.ring * row_bytes[value])
        if not made.transient:
            self.steady += size
            return
        slot = slot_of(self.structure, streams, value)
        if slot >= 0 and not streams[slot].transient:
            return  # its rows lie in a ring that is counted already
        maker, handed_on = self.structure.maker(value), slot >= 0
        if self.body is not None:
            readers = {use.node for use in self.structure.uses[value]}
            self.body.hold(maker, readers, made.fresh, size, handed_on=handed_on)
            return
        for node in range(maker, self.structure.last_use(value) + (not handed_on)):
            self._add(node, size)

    def hold_workspace(self, node: int, size: int) -> None:
        """Count bytes that each call of a node needs while it runs."""
        if self.body is not None:
            self.body.use(node, size)
        self._add(node, size)

    def peak(self, room: int) -> int:
        """Return the most bytes at any call; constants count beyond `room`, which is reserved for them in any case."""
        passing = self._most if self.body is None else max(self.body.live)
        return self.steady + passing + max(self.constants - room, 0)

    def _add(self, node: int, size: int) -> None:
        self._around[node] = size + self._around.get(node, 0)
        self._most = max(self._most, self._around[node])
