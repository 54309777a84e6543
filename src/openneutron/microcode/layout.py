"""Packing and unpacking of the table's records."""

from __future__ import annotations

import struct
from functools import cache
from typing import Any

from openneutron.errors import FormatError
from openneutron.microcode.table import Field, Record

_CODES = {"u8": "B", "u16": "H", "u32": "I", "i32": "i"}


def split_kind(field: Field) -> tuple[str, int]:
    """("u32", 6) of "u32x6"; a plain kind counts as one element."""
    kind, _, count = field.kind.partition("x")
    return kind, int(count or 1)


@cache
def _struct(record: Record) -> struct.Struct:
    codes = []
    for field in record.fields:
        kind, count = split_kind(field)
        codes.append(f"{count}s" if kind == "u8" and count > 1 else _CODES[kind] * count)
    return struct.Struct("<" + "".join(codes))


def size_of(record: Record) -> int:
    """Bytes of one record."""
    return _struct(record).size


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
    flat: list[Any] = []
    for field in record.fields:
        kind, count = split_kind(field)
        value = values.pop(field.name, None)
        if kind == "u8" and count > 1:
            flat.append((value or b"").ljust(count, b"\0"))
        elif count > 1:
            items = list(value or ())
            flat += items + [0] * (count - len(items))
        else:
            flat.append(value or 0)
    if values:
        raise KeyError(f"record {record.name} has no field {sorted(values)}")
    return _struct(record).pack(*flat)


def unpack(record: Record, data: bytes | memoryview, offset: int) -> dict[str, Any]:
    """The fields of the record at `offset`; a `FormatError` names the offset when it does not fit."""
    layout = _struct(record)
    if offset < 0 or offset + layout.size > len(data):
        raise FormatError(f"{record.name} record at byte {offset} leaves the block of {len(data)} bytes")
    flat = list(layout.unpack_from(data, offset))
    values: dict[str, Any] = {}
    at = 0
    for field in record.fields:
        kind, count = split_kind(field)
        if count > 1 and kind != "u8":
            values[field.name] = tuple(flat[at : at + count])
            at += count
        else:
            values[field.name] = flat[at]
            at += 1
    return values
