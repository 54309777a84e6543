"""Stores tables of one INT32 per channel and column in as few bits as the range of each column needs."""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

from openneutron.errors import FormatError
from openneutron.microcode.storage.bits import Bytes

_COLUMN = struct.Struct("<iBB2x")  # smallest value, bits of a difference, zero bits below them


def _ranges(table: npt.NDArray[np.int32], channels: int) -> tuple[npt.NDArray[np.int64], list[tuple[int, int, int]]]:
    """Return differences from each column's least value, and (least value, bits per difference, low zero bits) per column."""
    columns = table[:, :channels].astype(np.int64)
    low = columns.min(axis=1)
    columns -= low[:, None]
    found = []
    for smallest, every in zip(low.tolist(), np.bitwise_or.reduce(columns, axis=1).tolist(), strict=True):
        shift = (every & -every).bit_length() - 1 if every else 0
        found.append((smallest, (every >> shift).bit_length(), shift))
    return columns, found


def columns_bytes(table: npt.NDArray[np.int32], channels: int) -> int | None:
    """Return the size of what `write_columns` writes; None if the padding is not zero and so would be lost."""
    if channels > table.shape[1] or table[:, channels:].any():
        return None
    return sum(_COLUMN.size + -(-bits * channels // 8) for _, bits, _ in _ranges(table, channels)[1])


def write_columns(table: npt.NDArray[np.int32], channels: int) -> bytes:
    """Return a table [columns, padded channels] as bytes."""
    heads, streams = b"", b""
    for differences, (low, bits, shift) in zip(*_ranges(table, channels), strict=True):
        heads += _COLUMN.pack(low, bits, shift)
        places = differences[:, None] >> shift + np.arange(bits)[None, :] & 1
        streams += np.packbits(places.astype(np.uint8).reshape(-1), bitorder="little").tobytes()
    return heads + streams


def read_columns(data: Bytes, columns: int, channels: int, padded: int) -> npt.NDArray[np.int32]:
    """Read what `write_columns` writes."""
    table = np.zeros((columns, padded), np.uint32)
    at = columns * _COLUMN.size
    if at > len(data):
        raise FormatError(f"{columns} columns in {len(data)} bytes")
    for number in range(columns):
        low, bits, shift = _COLUMN.unpack_from(data.tobytes(), number * _COLUMN.size)
        size = -(-bits * channels // 8)
        if bits + shift > 32 or at + size > len(data):
            raise FormatError(f"column {number} of {bits} bits for {channels} channels in {len(data)} bytes")
        table[number, :channels] = low & 0xFFFFFFFF
        if bits:  # without any, a few bytes may say millions of channels
            found = np.unpackbits(data[at : at + size], bitorder="little")[: bits * channels].reshape(channels, bits)
            places = np.arange(bits, dtype=np.uint32)[None, :]
            table[number, :channels] += (found.astype(np.uint32) << places).sum(axis=1, dtype=np.uint32) << shift
        at += size
    if at != len(data):
        raise FormatError(f"columns of {at} bytes in {len(data)}")
    return table.view(np.int32)
