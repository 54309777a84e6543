"""The wire to LiteRT's process: what is sent arrives, and what is no message of ours is noticed."""

from __future__ import annotations

import socket
import struct
import threading
import time
from typing import Any

import numpy as np
import pytest

from openneutron.run import wire

ARRAYS = {
    "bytes": np.arange(6, dtype=np.int8).reshape(2, 3),
    "scalar": np.array(7, np.int64),
    "empty": np.zeros((0, 4), np.float32),
    "complex": np.array([1j], np.complex64),
    "bool": np.array([True, False]),
    "strings": np.array([b"a", b"", "µ".encode()], object),
    "big end": np.array([1, 2], ">i2"),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_there_and_back(name: str) -> None:
    (found,) = wire.unpack(*wire.pack([ARRAYS[name]]))
    assert found.dtype == ARRAYS[name].dtype and found.shape == ARRAYS[name].shape
    assert found.tolist() == ARRAYS[name].tolist()


WRONG: dict[str, tuple[Any, bytes]] = {
    "no list": (None, b""),
    "no table": ([7], b""),
    "too short": ([{"dtype": "<i4", "shape": [2]}], bytes(7)),
    "too long": ([{"dtype": "<i4", "shape": [2]}], bytes(9)),
    "huge": ([{"dtype": "|i1", "shape": [2**62, 2**62]}], b""),
    "negative": ([{"dtype": "|i1", "shape": [-1, -1]}], b"1"),
    "objects": ([{"dtype": "|O", "shape": [1]}], bytes(8)),
    "no type": ([{"dtype": "sock", "shape": [1]}], bytes(8)),
    "lengths": ([{"dtype": "strings", "shape": [2], "lengths": [1]}], b"1"),
    "words": ([{"dtype": "|i1", "shape": ["many"]}], b"1"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_agree_is_refused(name: str) -> None:
    with pytest.raises(wire.Garbled):
        wire.unpack(*WRONG[name])


def test_messages() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        payload = bytes(range(256)) * 20_000  # more than a socket's buffer
        sender = threading.Thread(target=wire.send, args=(theirs, {"do": "run"}, payload))
        sender.start()
        assert wire.receive(ours) == ({"do": "run"}, payload)
        sender.join()
        theirs.sendall(struct.pack("<IQ", 2, 1 << 50))
        with pytest.raises(wire.Garbled, match="a message of"):
            wire.receive(ours)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for text in (b"[", b"[]"):
            theirs.sendall(struct.pack("<IQ", len(text), 0) + text)
            with pytest.raises(wire.Garbled):
                wire.receive(ours)
        with pytest.raises(TimeoutError):
            wire.receive(ours, until=time.monotonic() + 0.01)
        theirs.close()
        assert wire.receive(ours) is None
