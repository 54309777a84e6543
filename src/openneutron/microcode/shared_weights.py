"""A payload whose weights are stored apart, once for several methods of a program, as ExecuTorch's named data.

Without its weights a payload is everything around them, and 64 bytes behind it that say what is missing. The weights are the
first bytes of the named data: a method that shares them may have more behind them. Put in again they give the payload byte for
byte, its checksum included.

Example:
    >>> short = without_weights(payload, key_of(weights), where="forward")
    >>> with_weights(short, named.__getitem__, where="forward") == payload
    True
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from openneutron.errors import FormatError
from openneutron.microcode.table import ALIGNMENT

_MAGIC: Final = 0x77534E4F  # "ONSw" in the file
_VERSION: Final = 1
# The key with zeros behind it, the byte where the weights belong, their number, version, magic.
_TRAILER: Final = struct.Struct("<48sIIII")
_SIZES: Final = struct.Struct("<24xII")  # of microcode and weights, in the microcode's header


@dataclass(frozen=True)
class Apart:
    """Weights that are stored apart: the key of the named data they begin, their place in the payload, and its size without."""

    key: str
    at: int
    size: int
    payload_bytes: int
    version: int


def key_of(weights: bytes) -> str:
    """Return the name of weights: programs that are merged may not have one name for different data."""
    return f"neutron-{hashlib.sha256(weights).hexdigest()[:32]}"


def without_weights(payload: bytes, key: str, *, where: str) -> bytes:
    """Return the payload without its weights, which begin the named data of this key."""
    code = _padded_size(4 + 2 * (payload[0] + payload[1])) if len(payload) > 1 else 0
    if code + _SIZES.size > len(payload):
        raise FormatError("the payload ends inside its header", where=where)
    microcode, size = _SIZES.unpack_from(payload, code)
    at = code + _padded_size(microcode)
    return b"".join(
        (payload[:at], payload[at + _padded_size(size) :], _TRAILER.pack(key.encode(), at, size, _VERSION, _MAGIC))
    )


def find_apart(payload: bytes) -> Apart | None:
    """Return what a payload says of weights that are stored apart, None where it is whole."""
    end = len(payload) - _TRAILER.size
    if end < 0:
        return None
    name, at, size, version, magic = _TRAILER.unpack_from(payload, end)
    if magic != _MAGIC:
        return None
    return Apart(name.rstrip(b"\0").decode("ascii", "replace"), at, size, end, version)


def with_weights(payload: bytes, find: Callable[[str], bytes], *, where: str) -> bytes:
    """Return the payload with its weights, of the data that `find` returns for their key; whole ones come back as they are."""
    apart = find_apart(payload)
    if apart is None:
        return payload
    if apart.version != _VERSION or apart.at > apart.payload_bytes:
        message = f"weights of version {apart.version} belong to byte {apart.at} of {apart.payload_bytes}"
        raise FormatError(message, where=where)
    weights = find(apart.key)[: apart.size]
    if len(weights) != apart.size:
        message = f"the named data {apart.key!r} has {len(weights)} bytes, the payload needs {apart.size}"
        raise FormatError(message, where=where)
    padding = bytes(_padded_size(apart.size) - apart.size)
    return b"".join((payload[: apart.at], weights, padding, payload[apart.at : apart.payload_bytes]))


def _padded_size(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
