"""Messages between this process and the LiteRT process: a JSON header and the bytes of arrays.

Nothing on this wire is unpickled or evaluated: a model that takes that process over can only answer wrongly.

Example:
    >>> send(connection, {"do": "run"}, *pack([image]))
    >>> header, payload = receive(connection, most=1 << 30)
    >>> outputs = unpack(header["arrays"], payload)
"""

from __future__ import annotations

import json
import math
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_HEAD = struct.Struct("<IQ")  # bytes of the header, bytes that follow it
_MOST_HEADER = 1 << 26  # shapes of tens of thousands of tensors and lengths of strings take less
_CHUNK = 1 << 20
_KINDS = "biufc"
_STRINGS = "strings"


class Garbled(ValueError):
    """A received message is malformed."""


def pack(arrays: Sequence[Array]) -> tuple[list[dict[str, Any]], bytes]:
    """Return types and shapes of arrays, and their bytes; arrays of byte strings also have the lengths of their elements."""
    described: list[dict[str, Any]] = []
    parts: list[bytes] = []
    for array in arrays:
        value = np.asarray(array)
        if value.dtype.kind == "V":  # types numpy lacks are held as integers of the same bits
            value = value.view(f"u{value.dtype.itemsize}")
        one: dict[str, Any] = {"dtype": value.dtype.str, "shape": list(value.shape)}
        if value.dtype.kind in "OSU":
            texts = [text.encode() if isinstance(text, str) else bytes(text) for text in value.reshape(-1).tolist()]
            one |= {"dtype": _STRINGS, "lengths": [len(text) for text in texts]}
            parts += texts
        else:
            parts.append(value.tobytes())
        described.append(one)
    return described, b"".join(parts)


def unpack(described: Any, payload: bytes) -> list[Array]:
    """Return the arrays; raises `Garbled` unless types, shapes and bytes agree."""
    arrays: list[Array] = []
    at = 0
    try:
        for one in described:
            shape = tuple(int(size) for size in one["shape"])
            lengths = [int(size) for size in one.get("lengths", ())]
            if min((*shape, *lengths), default=0) < 0:
                raise Garbled("a negative size")
            if one["dtype"] == _STRINGS:
                if len(lengths) != math.prod(shape):
                    raise Garbled("strings and their lengths differ in number")
                texts = []
                for size in lengths:
                    texts.append(payload[at : at + size])
                    at += size
                array: Array = np.empty(len(texts), object)
                array[:] = texts
                arrays.append(array.reshape(shape))
                continue
            dtype = np.dtype(str(one["dtype"]))
            size = math.prod(shape) * dtype.itemsize
            if dtype.kind not in _KINDS or size > len(payload) - at:
                raise Garbled(f"an array of {dtype} {list(shape)}")
            arrays.append(np.frombuffer(payload, dtype, math.prod(shape), at).reshape(shape))
            at += size
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise Garbled(str(error)) from error
    if at != len(payload):
        raise Garbled(f"{len(payload)} bytes for arrays of {at}")
    return arrays


def send(connection: socket.socket, header: dict[str, Any], payload: bytes = b"", *, until: float = math.inf) -> None:
    """Send a message; `TimeoutError` when the other side does not take it before `until`, on `time.monotonic`."""
    text = json.dumps(header).encode()
    for part in (_HEAD.pack(len(text), len(payload)) + text, payload):
        connection.settimeout(_seconds_left(until))
        connection.sendall(part)


def receive(
    connection: socket.socket, *, most: int = 1 << 40, until: float = math.inf
) -> tuple[dict[str, Any], bytes] | None:
    """Receive the next message of at most `most` bytes; None when the connection was closed."""
    head = _exactly(connection, _HEAD.size, until)
    if head is None:
        return None
    header_size, size = _HEAD.unpack(head)
    if header_size > _MOST_HEADER or size > most:
        raise Garbled(f"a message of {header_size + size:,} bytes")
    text = _exactly(connection, header_size, until)
    payload = _exactly(connection, size, until)
    if text is None or payload is None:
        return None
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Garbled(str(error)) from error
    if not isinstance(header, dict):
        raise Garbled("a header that is no table")
    return header, payload


def _exactly(connection: socket.socket, size: int, until: float) -> bytes | None:
    found = bytearray()
    while len(found) < size:
        connection.settimeout(_seconds_left(until))
        part = connection.recv(min(_CHUNK, size - len(found)))
        if not part:
            return None
        found += part
    return bytes(found)


def _seconds_left(until: float) -> float | None:
    if until == math.inf:
        return None
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
