"""Tables of one INT32 per channel and column, stored in as few bits as the column's range asks.

A column is its smallest value, the zero bits that all differences to it end with, and the bits that remain; a column whose
channels agree takes no bits. Padding channels are zeros and not stored.
"""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

from openneutron.errors import FormatError
from openneutron.microcode.storage.bits import Bytes

_COLUMN = struct.Struct("<iBB2x")  # smallest value, bits of a difference, zero bits below them

MAX_COLUMNS = 8


def write_columns(table: npt.NDArray[np.int32], channels: int) -> bytes:
    """[columns, padded channels] as bytes."""
    heads, streams = b"", b""
    for column in table[:, :channels].astype(np.int64):
        low = int(column.min())
        differences = column - low
        every = int(np.bitwise_or.reduce(differences))
        shift = (every & -every).bit_length() - 1 if every else 0
        bits = (every >> shift).bit_length()
        heads += _COLUMN.pack(low, bits, shift)
        places = differences[:, None] >> shift + np.arange(bits)[None, :] & 1
        streams += np.packbits(places.astype(np.uint8).reshape(-1), bitorder="little").tobytes()
    return heads + streams


def read_columns(data: Bytes, columns: int, channels: int, padded: int) -> npt.NDArray[np.int32]:
    """The inverse of `write_columns`."""
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
