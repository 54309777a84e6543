"""A bounds-checked flatbuffer walker: every offset, vtable and length is validated before it is used.

The schema's generated accessors trust their input (Python's `struct` even takes negative offsets from the end), so
a file that came from outside is walked with this first. Offsets only point forward, hence no walk can loop; a
budget on what is materialised keeps overlapping tables from costing more than a small multiple of the file.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import Any

import numpy as np

from openneutron.errors import FormatError
from openneutron.litert.graph import Array

_U8, _I8, _U16, _U32, _I32, _U64 = (Struct(f"<{code}") for code in "BbHIiQ")

# In a file without overlaps all that is read adds up to less than the file: four times leaves room for shared
# strings and tables, 64 KiB for tiny files.
_BUDGET_FACTOR, _BUDGET_BASE = 4, 1 << 16
# A visit costs some microseconds however small the table, and a damaged or hostile file must be answered within a
# second. A model of 5,000 operators has about 30,000 tables.
MAX_TABLES = 1 << 17


@lru_cache(maxsize=64)
def _slots(count: int) -> Struct:
    return Struct(f"<{count}H")


class Walker:
    """Owns the bytes, the name of their source and the budget."""

    def __init__(self, data: bytes | bytearray | memoryview, source: str) -> None:
        self.data = memoryview(data).cast("B") if memoryview(data).nbytes else memoryview(b"")
        self.size = len(self.data)
        self.source = source
        self._left = _BUDGET_FACTOR * self.size + _BUDGET_BASE
        self._tables = 0
        self._strings: dict[int, str] = {}

    def error(self, message: str, where: str, position: int | None = None, hint: str = "") -> FormatError:
        """A FormatError naming the source, the element and the byte offset."""
        place = ", ".join(part for part in (self.source, where) if part)
        if position is not None:
            place += f", byte {position}"
        return FormatError(message, where=place, hint=hint)

    def root(self, identifier: bytes) -> Table:
        """The root table, after checking the file identifier at byte 4."""
        if self.size < 8:
            raise self.error(f"the file has {self.size} bytes, too few for a model", "", 0)
        found = bytes(self.data[4:8])
        if found != identifier:
            raise self.error(
                f"the file identifier is {found!r}, not {identifier!r}", "", 4, hint="is this a .tflite file?"
            )
        return self.table(_U32.unpack_from(self.data, 0)[0], "model")

    def spend(self, count: int, where: str, position: int) -> None:
        """Charge `count` bytes of reading to the budget."""
        self._left -= count
        if self._left < 0:
            raise self.error("the tables of this file overlap far beyond its size", where, position)

    def table(self, position: int, where: str) -> Table:
        """The table at `position`, its vtable checked."""
        data, size = self.data, self.size
        if position < 4 or position + 4 > size:
            raise self.error(f"a table lies outside the file of {size} bytes", where, position)
        vtable = position - _I32.unpack_from(data, position)[0]
        if vtable < 4 or vtable + 4 > size:
            raise self.error(f"the vtable at byte {vtable} lies outside the file of {size} bytes", where, position)
        length = _U16.unpack_from(data, vtable)[0]
        inline = _U16.unpack_from(data, vtable + 2)[0]
        if length < 4 or length & 1 or vtable + length > size:
            raise self.error(f"the vtable at byte {vtable} has the impossible length {length}", where, position)
        if inline < 4 or position + inline > size:
            raise self.error(f"the vtable at byte {vtable} gives the table {inline} bytes", where, position)
        self.spend(inline, where, position)
        self._tables += 1
        if self._tables > MAX_TABLES:
            raise self.error(f"the file has more than {MAX_TABLES} tables", where, position)
        count = (length - 4) // 2
        fields = _slots(count).unpack_from(data, vtable + 4)
        return Table(self, position, fields, inline, where)

    def span(self, start: int, count: int, where: str) -> Array:
        """`count` raw bytes at absolute offset `start`, as a read-only view."""
        if start + count > self.size:
            raise self.error(f"{count} bytes at offset {start} lie outside the file of {self.size} bytes", where, start)
        view: Array = np.frombuffer(self.data, np.uint8, count, start)
        view.flags.writeable = False
        return view

    def text(self, position: int, where: str) -> str:
        """The string whose length word is at `position`; bytes that are not UTF-8 are shown escaped."""
        known = self._strings.get(position)
        if known is None:
            view = self.vector(position, "u1", where)
            self.spend(len(view), where, position)
            known = self._strings[position] = view.tobytes().decode("utf-8", "backslashreplace")
        return known

    def vector(self, position: int, dtype: str, where: str) -> Array:
        """The vector of scalars whose length word is at `position`, as a read-only view."""
        if position + 4 > self.size:
            raise self.error(f"a vector lies outside the file of {self.size} bytes", where, position)
        length = _U32.unpack_from(self.data, position)[0]
        kind = np.dtype(dtype)
        if position + 4 + length * kind.itemsize > self.size:
            raise self.error(f"a vector of {length} elements runs past the end of the file", where, position)
        view: Array = np.frombuffer(self.data, kind, length, position + 4)
        view.flags.writeable = False
        return view

    def values(self, position: int, dtype: str, where: str) -> list[Any]:
        """The vector at `position` as Python numbers. Charged on every use, since many tables may name one vector."""
        view = self.vector(position, dtype, where)
        self.spend(view.nbytes, where, position)
        values: list[Any] = view.tolist()
        return values


class Table:
    """One checked table; fields are read by their slot number in the schema."""

    __slots__ = ("fields", "inline", "position", "walker", "where")

    def __init__(self, walker: Walker, position: int, fields: tuple[int, ...], inline: int, where: str) -> None:
        self.walker = walker
        self.position = position
        self.fields = fields
        self.inline = inline
        self.where = where

    def error(self, message: str, hint: str = "") -> FormatError:
        """A FormatError naming this table."""
        return self.walker.error(message, self.where, self.position, hint)

    def _field(self, slot: int, width: int) -> int:
        """Absolute position of a field of `width` bytes; 0 when it is absent."""
        offset = self.fields[slot] if slot < len(self.fields) else 0
        if offset == 0:
            return 0
        if offset < 4 or offset + width > self.inline:
            raise self.error(f"field {slot} at offset {offset} lies outside its table of {self.inline} bytes")
        return self.position + offset

    def _scalar(self, slot: int, kind: Struct, default: int) -> int:
        at = self._field(slot, kind.size)
        return int(kind.unpack_from(self.walker.data, at)[0]) if at else default

    def number(self, slot: int, kind: Struct, default: Any) -> Any:
        """A number of any kind."""
        at = self._field(slot, kind.size)
        return kind.unpack_from(self.walker.data, at)[0] if at else default

    def u8(self, slot: int, default: int = 0) -> int:
        """An unsigned byte (also unions' type numbers)."""
        return self._scalar(slot, _U8, default)

    def i8(self, slot: int, default: int = 0) -> int:
        """A signed byte."""
        return self._scalar(slot, _I8, default)

    def u32(self, slot: int, default: int = 0) -> int:
        """An unsigned 32-bit word."""
        return self._scalar(slot, _U32, default)

    def i32(self, slot: int, default: int = 0) -> int:
        """A signed 32-bit word."""
        return self._scalar(slot, _I32, default)

    def u64(self, slot: int, default: int = 0) -> int:
        """An unsigned 64-bit word."""
        return self._scalar(slot, _U64, default)

    def target(self, slot: int) -> int:
        """Absolute position an offset field points to; 0 when it is absent."""
        at = self._field(slot, 4)
        return at + int(_U32.unpack_from(self.walker.data, at)[0]) if at else 0

    def table(self, slot: int, where: str) -> Table | None:
        """A sub-table, or None."""
        at = self.target(slot)
        return self.walker.table(at, where) if at else None

    def text(self, slot: int) -> str:
        """A string; empty when it is absent."""
        at = self.target(slot)
        return self.walker.text(at, self.where) if at else ""

    def vector(self, slot: int, dtype: str) -> Array | None:
        """A vector of scalars as a view, or None."""
        at = self.target(slot)
        return self.walker.vector(at, dtype, self.where) if at else None

    def values(self, slot: int, dtype: str) -> list[Any]:
        """A vector of scalars as Python numbers; empty when it is absent."""
        at = self.target(slot)
        return self.walker.values(at, dtype, self.where) if at else []

    def has(self, slot: int) -> bool:
        """True when the field is in the file."""
        return slot < len(self.fields) and self.fields[slot] != 0

    def positions(self, slot: int) -> list[int]:
        """Absolute positions of the tables in a vector of tables; they are checked when visited."""
        at = self.target(slot)
        if not at:
            return []
        offsets = self.walker.vector(at, "<u4", self.where)
        if len(offsets) > MAX_TABLES:
            raise self.error(f"a vector names {len(offsets)} tables, more than {MAX_TABLES}")
        self.walker.spend(offsets.nbytes, self.where, at)
        places: list[int] = (offsets.astype(np.int64) + np.arange(at + 4, at + 4 + 4 * len(offsets), 4)).tolist()
        return places
