"""A small reader of FlatBuffers: bounded, no recursion, every read checked against the file's end."""

from __future__ import annotations

import struct
from typing import Any

from openneutron.certify.refused import Refused


class Table:
    """One table: fields by slot number."""

    def __init__(self, data: memoryview, position: int) -> None:
        self.data, self.position = data, position
        (back,) = read(data, position, "<i")
        self.vtable = position - int(back)
        (self.vtable_size,) = read(data, self.vtable, "<H")

    def place(self, slot: int) -> int:
        """Where a field lies, 0 when it is absent."""
        at = 4 + 2 * slot
        if at + 2 > self.vtable_size:
            return 0
        (offset,) = read(self.data, self.vtable + at, "<H")
        return self.position + int(offset) if offset else 0

    def scalar(self, slot: int, kind: str, default: Any) -> Any:
        """A number; `kind` is a letter of `struct`."""
        at = self.place(slot)
        return read(self.data, at, f"<{kind}")[0] if at else default

    def target(self, slot: int) -> int:
        """Where the field's offset leads, 0 when it is absent."""
        at = self.place(slot)
        return at + int(read(self.data, at, "<I")[0]) if at else 0

    def table(self, slot: int) -> Table | None:
        """A table behind a field."""
        at = self.target(slot)
        return Table(self.data, at) if at else None

    def vector(self, slot: int, kind: str) -> tuple[Any, ...]:
        """A vector of numbers."""
        at = self.target(slot)
        if not at:
            return ()
        (count,) = read(self.data, at, "<I")
        return read(self.data, at + 4, f"<{count}{kind}")

    def raw(self, slot: int) -> memoryview | None:
        """A vector of bytes, not copied; None when it is absent."""
        at = self.target(slot)
        if not at:
            return None
        (count,) = read(self.data, at, "<I")
        if at + 4 + count > len(self.data):
            raise Refused("a vector leaves the file", at)
        return self.data[at + 4 : at + 4 + count]

    def text(self, slot: int) -> bytes:
        """A string."""
        found = self.raw(slot)
        return b"" if found is None else bytes(found)

    def tables(self, slot: int) -> list[Table]:
        """A vector of tables."""
        start = self.target(slot)
        return [Table(self.data, start + 4 + 4 * at + offset) for at, offset in enumerate(self.vector(slot, "I"))]


def read(data: memoryview, position: int, kind: str) -> tuple[Any, ...]:
    """Numbers at a position."""
    try:
        size = struct.calcsize(kind)
    except (struct.error, OverflowError, MemoryError):
        size = len(data) + 1
    if position < 0 or position + size > len(data):
        raise Refused("a field leaves the file", max(position, 0))
    return struct.unpack_from(kind, data, position)


def root(data: bytes, identifier: bytes) -> Table:
    """The root table of a file with this identifier."""
    view = memoryview(data)
    if len(data) < 8 or data[4:8] != identifier:
        raise Refused(f"this is no {identifier.decode()} file", 4)
    return Table(view, int(read(view, 0, "<I")[0]))
