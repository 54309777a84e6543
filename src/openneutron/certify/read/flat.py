"""Reads FlatBuffers without recursion and within bounds, and records which bytes of the file were read.

A `Ledger` records every table, vector and string that is read, and every field of a table. `Ledger.close` refuses the file if a
field was not read, if two structures overlap, or if anything but short zero padding lies between them. So a field that the
checker does not understand makes it refuse the file, whether the schema has it or not.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from openneutron.certify.refused import Refused

_PADDING = 64  # bytes: buffers are aligned to 16, and those behind the flatbuffer to a cache line at most
_OFFSET = 4  # bytes of the offset to the vtable, before a table's fields
_HEADER = 8  # offset of the root, and the identifier
_MOST_FIELDS = 64  # slots of a vtable: LiteRT's largest table has 14


@dataclass
class _Fields:
    """The fields of one table: their positions by its vtable, and the size of each field that was read."""

    kind: str
    size: int
    places: dict[int, int]
    read: dict[int, int] = field(default_factory=dict)


@dataclass
class Ledger:
    """The record of which bytes of a file were read, and as what."""

    data: memoryview
    spans: dict[tuple[int, int], str] = field(default_factory=dict)
    tables: dict[int, _Fields] = field(default_factory=dict)

    def note(self, start: int, end: int, kind: str) -> None:
        """Record that these bytes were read as `kind`; refuse bytes that were read as another kind before."""
        before = self.spans.setdefault((start, end), kind)
        if before != kind:
            raise Refused(f"{kind} lies on {before}", start)

    def close(self, end: int | None = None) -> None:
        """Refuse a file with unread bytes before byte `end`."""
        for position, table in self.tables.items():
            self.note(position, position + self._extent(position, table), table.kind)
        reached, last = 0, "the beginning"
        for (start, stop), kind in sorted(self.spans.items()):
            if start < reached:
                raise Refused(f"{kind} lies on {last}", start)
            self._padding(reached, start)
            reached, last = stop, kind
        self._padding(reached, len(self.data) if end is None else end)

    def _padding(self, start: int, end: int) -> None:
        gap = self.data[start:end]
        if any(gap[:_PADDING]) or end - start >= _PADDING:
            byte = next((at for at, one in enumerate(gap[:_PADDING]) if one), 0)
            raise Refused(f"{end - start} bytes that belong to nothing", start + byte)

    def _extent(self, position: int, table: _Fields) -> int:
        """Return the size of a table up to its last field.

        Some writers state a larger size in a vtable that tables of other sizes share.
        """
        ends = _OFFSET
        for offset, slot in sorted((offset, slot) for slot, offset in table.places.items()):
            if slot not in table.read:
                raise Refused(f"field {slot} of {table.kind} is none that the checker reads", position + offset)
            if offset < ends or offset + table.read[slot] > table.size:
                raise Refused(f"fields of {table.kind} lie on each other", position + offset)
            if any(self.data[position + ends : position + offset]):
                raise Refused(f"bytes of {table.kind} that belong to no field", position + ends)
            ends = offset + table.read[slot]
        if table.size >= ends + _PADDING or position + table.size > len(self.data):
            raise Refused(f"{table.kind} is said to have {table.size} bytes", position)
        return ends


class Table:
    """One table: fields by slot number; `kind` is what messages call it."""

    def __init__(self, ledger: Ledger, position: int, kind: str) -> None:
        self.ledger, self.data, self.position, self.kind = ledger, ledger.data, position, kind
        self.fields = ledger.tables.get(position) or self._open()
        if self.fields.kind != kind:
            raise Refused(f"{kind} lies on {self.fields.kind}", position)

    def _open(self) -> _Fields:
        (back,) = read(self.data, self.position, "<i")
        vtable = self.position - int(back)
        length, size = read(self.data, vtable, "<2H")
        if length < 4 or length % 2 or size < 4 or length > 4 + 2 * _MOST_FIELDS:
            raise Refused(f"the vtable of {self.kind} makes no sense", vtable)
        offsets = read(self.data, vtable, f"<{length // 2}H")[2:]
        self.ledger.note(vtable, vtable + length, "a vtable")
        places = {slot: offset for slot, offset in enumerate(offsets) if offset}
        made = self.ledger.tables[self.position] = _Fields(self.kind, size, places)
        return made

    def _place(self, slot: int, width: int) -> int:
        """Return the position of a field, 0 when it is absent, and record it as read."""
        offset = self.fields.places.get(slot, 0)
        if not offset:
            return 0
        if self.fields.read.setdefault(slot, width) != width:
            raise Refused(f"field {slot} of {self.kind} is read in two ways", self.position + offset)
        return self.position + offset

    def has(self, slot: int) -> bool:
        """Return whether the field is present."""
        return slot in self.fields.places

    def scalar(self, slot: int, kind: str, default: Any) -> Any:
        """Return a number; `kind` is a format letter of `struct`."""
        at = self._place(slot, struct.calcsize(f"<{kind}"))
        if not at:
            return default
        if kind == "?" and self.data[at] > 1:
            raise Refused(f"field {slot} of {self.kind} is neither true nor false", at)
        return read(self.data, at, f"<{kind}")[0]

    def target(self, slot: int) -> int:
        """Return the position that a field's offset points to, 0 when the field is absent."""
        at = self._place(slot, 4)
        return at + int(read(self.data, at, "<I")[0]) if at else 0

    def table(self, slot: int, kind: str) -> Table | None:
        """Return the table that a field points to."""
        at = self.target(slot)
        return Table(self.ledger, at, kind) if at else None

    def _vector(self, slot: int, item: int, kind: str, *, behind: int = 0) -> tuple[int, int]:
        """Return first byte and count of a vector, (0, 0) when it is absent."""
        at = self.target(slot)
        if not at:
            return 0, 0
        (count,) = read(self.data, at, "<I")
        end = at + 4 + count * item + behind
        if end > len(self.data):
            raise Refused(f"{kind} leaves the file", at)
        self.ledger.note(at, end, kind)
        return at + 4, count

    def vector(self, slot: int, kind: str) -> tuple[Any, ...]:
        """Return a vector of numbers."""
        at, count = self._vector(slot, struct.calcsize(f"<{kind}"), f"a vector of {kind!r}")
        return read(self.data, at, f"<{count}{kind}") if at else ()

    def raw(self, slot: int) -> memoryview | None:
        """Return a vector of bytes without copying it; None when it is absent."""
        at, count = self._vector(slot, 1, "a vector of bytes")
        return self.data[at : at + count] if at else None

    def text(self, slot: int) -> bytes:
        """Return a zero-terminated string."""
        at, count = self._vector(slot, 1, "a string", behind=1)
        if at and self.data[at + count]:
            raise Refused("a string does not end", at + count)
        return bytes(self.data[at : at + count]) if at else b""

    def tables(self, slot: int, kind: str) -> list[Table]:
        """Return a vector of tables."""
        start, count = self._vector(slot, 4, f"a vector of {kind}")
        offsets: Sequence[int] = read(self.data, start, f"<{count}I") if start else ()
        return [Table(self.ledger, start + 4 * at + offset, kind) for at, offset in enumerate(offsets)]


def read(data: memoryview, position: int, kind: str) -> tuple[Any, ...]:
    """Return the numbers at a position, by a format of `struct`."""
    try:
        size = struct.calcsize(kind)
    except (struct.error, OverflowError, MemoryError):
        size = len(data) + 1
    if position < 0 or position + size > len(data):
        raise Refused("a field leaves the file", max(position, 0))
    return struct.unpack_from(kind, data, position)


def root(data: bytes, identifier: bytes, kind: str) -> Table:
    """Return the root table of a file; refuse another identifier."""
    if len(data) < _HEADER or data[4:8] != identifier:
        raise Refused(f"this is no {identifier.decode(errors='replace')} file", 4)
    ledger = Ledger(memoryview(data))
    ledger.note(0, _HEADER, "the header")
    return Table(ledger, int(read(ledger.data, 0, "<I")[0]), kind)
