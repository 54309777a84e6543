"""Maps in the FlexBuffers format: what custom operators keep their attributes in.

The writer takes integers and texts, and makes the same bytes of the same map every time. Importing the standard writer
takes 20 ms, a large part of a small model's compile; the reader, which only tools use, is the standard one.

Example:
    >>> read_map(encode_map({"target": "imxrt700", "calls": 8}))
    {'calls': 8, 'target': 'imxrt700'}
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

_UINT, _STRING, _MAP = 2, 5, 9
_WIDTH = 4  # bytes of every number and offset
_WIDTH_CODE = 2  # what stands for four bytes beside a type
_LONGEST = 200  # characters of a text that is shown


def encode_map(values: Mapping[str, int | str]) -> bytes:
    """Return the map's bytes, keys in order; numbers are from 0 to 2³² − 1.

    keys | texts, each with its length before it | offsets of the keys | map: where the keys are, values, types | root
    """
    rows = sorted((key.encode(), value) for key, value in values.items())
    made = bytearray()
    places: dict[bytes, int] = {}
    texts: dict[bytes, int] = {}
    for key, _ in rows:
        places[key] = len(made)
        made += key + b"\0"
    for key, value in rows:
        if isinstance(value, str):
            text = value.encode()
            made += bytes(-len(made) % _WIDTH) + struct.pack("<I", len(text))
            texts[key] = len(made)
            made += text + b"\0"
    made += bytes(-len(made) % _WIDTH) + struct.pack("<I", len(rows))
    offsets = len(made)
    for key, _ in rows:
        made += struct.pack("<I", len(made) - places[key])
    made += struct.pack("<3I", len(made) - offsets, _WIDTH, len(rows))
    start = len(made)
    for key, value in rows:
        made += struct.pack("<I", len(made) - texts[key] if isinstance(value, str) else value)
    made += bytes((_STRING if isinstance(value, str) else _UINT) << 2 | _WIDTH_CODE for _, value in rows)
    made += bytes(-len(made) % _WIDTH)
    made += struct.pack("<I2B", len(made) - start, _MAP << 2 | _WIDTH_CODE, _WIDTH)
    return bytes(made)


def read_map(data: bytes) -> dict[str, int | float | bool | str]:
    """Return the numbers and texts of a map in any file; lists and maps in it as their types' names.

    A map that cannot be read is empty: what other makers keep there is theirs to say.
    """
    from flatbuffers import flexbuffers

    try:
        root = flexbuffers.GetRoot(data)
        if not root.IsMap:
            return {}
        found = root.AsMap
        if len(found) > len(data):
            return {}
        keys = [key.AsKey for key in found.Keys]
        return {str(key): _value(value) for key, value in zip(keys, found.Values, strict=True)}
    except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError, struct.error):
        return {}


def _value(reference: Any) -> int | float | bool | str:
    if reference.IsBool:
        return bool(reference.AsBool)
    if reference.IsInt:
        return int(reference.AsInt)
    if reference.IsFloat:
        return float(reference.AsFloat)
    if reference.IsString:
        return str(reference.AsString)[:_LONGEST]
    return "none" if reference.IsNull else "a list or map"
