"""Writes and reads many prefix codes at once, most significant bit first."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

MAX_BITS = 25  # of one code: from any bit of a byte on it lies in four bytes


def write(codes: Ints, lengths: Ints, starts: Ints) -> tuple[bytes, Ints]:
    """Write the codes one after the other; return the bytes, and the size of each stream.

    A stream begins at each of `starts`, on a whole byte.

    Example:
        >>> write(np.array([1, 5]), np.array([1, 3]), np.array([0]))
        (b'\\xd0', array([1]))
    """
    ends = np.cumsum(lengths)
    before = ends - lengths
    counts = np.diff(np.append(starts, len(codes)))
    sizes = -(-np.diff(np.append(before[starts], ends[-1])) // 8)
    firsts = np.cumsum(sizes) - sizes
    at = before + np.repeat(8 * firsts - before[starts], counts.astype(np.intp))
    byte = at >> 3
    window = codes << (32 - (at & 7) - lengths)
    total = int(sizes.sum())
    found = np.zeros(total + 4, np.float64)  # sums of bytes that share no bit: exact
    for lane in range(4):
        part = window >> (24 - 8 * lane) & 0xFF
        found += np.bincount((byte + lane).astype(np.intp), weights=part, minlength=total + 4)
    return found[:total].astype(np.uint8).tobytes(), sizes


def windows(data: Bytes) -> npt.NDArray[np.uint16]:
    """Return, for each bit of `data`, the 16 bits from there on, with zeros behind the end."""
    padded = np.concatenate([data, np.zeros(3, np.uint8)]).astype(np.uint32)
    words = padded[:-2] << 16 | padded[1:-1] << 8 | padded[2:]
    shifts = 8 - np.arange(8, dtype=np.uint32)
    return (words[: len(data), None] >> shifts[None, :] & 0xFFFF).astype(np.uint16).reshape(-1)
