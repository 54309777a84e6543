"""Packing and unpacking of the table's records."""

from __future__ import annotations

import struct
from typing import Any

from openneutron.errors import FormatError
from openneutron.microcode.table import Field, Record

_CODES = {"u8": "B", "u16": "H", "u32": "I", "i32": "i"}


def split_kind(field: Field) -> tuple[str, int]:
    """("u32", 6) of "u32x6"; a plain kind counts as one element."""
    kind, _, count = field.kind.partition("x")
    return kind, int(count or 1)


class _Layout:
    """A record's struct, and its fields as (name, is text, count); `numbers` are zeros by name where all count one."""

    def __init__(self, record: Record) -> None:
        self.fields: list[tuple[str, bool, int]] = []
        codes = []
        for field in record.fields:
            kind, count = split_kind(field)
            text = kind == "u8" and count > 1
            self.fields.append((field.name, text, count))
            codes.append(f"{count}s" if text else _CODES[kind] * count)
        self.struct = struct.Struct("<" + "".join(codes))
        self.numbers = {name: 0 for name, _, _ in self.fields} if all(count == 1 for *_, count in self.fields) else {}


_LAYOUTS: dict[str, _Layout] = {}  # by name: hashing a record would walk all of its fields


def _layout(record: Record) -> _Layout:
    found = _LAYOUTS.get(record.name)
    if found is None:
        found = _LAYOUTS[record.name] = _Layout(record)
    return found


def size_of(record: Record) -> int:
    """Bytes of one record."""
    return _layout(record).struct.size


def offset_of(record: Record, name: str) -> int:
    """Byte offset of a field in its record."""
    at = 0
    for field in record.fields:
        if field.name == name:
            return at
        kind, count = split_kind(field)
        at += {"u8": 1, "u16": 2}.get(kind, 4) * count
    raise KeyError(f"record {record.name} has no field {name}")


def pack(record: Record, **values: Any) -> bytes:
    """One record as bytes; missing fields are zero, arrays are padded with zeros."""
    layout = _layout(record)
    if layout.numbers and values.keys() <= layout.numbers.keys():
        return layout.struct.pack(*(layout.numbers | values).values())
    flat: list[Any] = []
    for name, text, count in layout.fields:
        value = values.pop(name, None)
        if count == 1:
            flat.append(value or 0)
        elif text:
            flat.append((value or b"").ljust(count, b"\0"))
        else:
            items = list(value or ())
            flat += items + [0] * (count - len(items))
    if values:
        raise KeyError(f"record {record.name} has no field {sorted(values)}")
    return layout.struct.pack(*flat)


def pack_in_order(record: Record, *values: int) -> bytes:
    """One record as bytes, all of its fields given in their order."""
    return _layout(record).struct.pack(*values)


def unpack(record: Record, data: bytes | memoryview, offset: int) -> dict[str, Any]:
    """The fields of the record at `offset`; a `FormatError` names the offset when it does not fit."""
    layout = _layout(record)
    if offset < 0 or offset + layout.struct.size > len(data):
        raise FormatError(f"{record.name} record at byte {offset} leaves the block of {len(data)} bytes")
    flat = layout.struct.unpack_from(data, offset)
    values: dict[str, Any] = {}
    at = 0
    for name, text, count in layout.fields:
        if count > 1 and not text:
            values[name] = flat[at : at + count]
            at += count
        else:
            values[name] = flat[at]
            at += 1
    return values
