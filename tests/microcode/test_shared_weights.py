"""Weights stored apart from their payload: put in again they give it byte for byte; what does not fit has a sentence."""

from __future__ import annotations

import struct

import pytest

from openneutron.errors import FormatError
from openneutron.microcode.shared_weights import find_apart, key_of, with_weights, without_weights

WEIGHTS = bytes(range(1, 22))  # 21 bytes: padded to 32
# One input, one output; microcode of 32 bytes that says how long it and the weights are; kernels and checksum.
HEAD = bytes([1, 1, 1, 0, 0, 0, 0, 0]).ljust(16, b"\0")
MICROCODE = struct.pack("<24xII", 32, len(WEIGHTS))
PAYLOAD = HEAD + MICROCODE + WEIGHTS.ljust(32, b"\0") + b"kernels and what is behind them"


def test_weights_are_put_back_where_they_were() -> None:
    key = key_of(WEIGHTS)
    short = without_weights(PAYLOAD, key, where="here")
    apart = find_apart(short)
    assert apart is not None and (apart.key, apart.at, apart.size) == (key, 48, 21)
    assert WEIGHTS not in short
    assert with_weights(short, {key: WEIGHTS + b"more of another method"}.__getitem__, where="here") == PAYLOAD


def test_a_whole_payload_stays_as_it_is() -> None:
    assert find_apart(PAYLOAD) is None
    assert find_apart(b"") is None
    assert with_weights(PAYLOAD, {}.__getitem__, where="here") == PAYLOAD


def test_keys_differ_with_the_weights() -> None:
    assert key_of(WEIGHTS) == key_of(WEIGHTS) != key_of(WEIGHTS + b"\0")
    assert len(key_of(WEIGHTS)) < 48


def test_damage_has_a_sentence() -> None:
    short = without_weights(PAYLOAD, "key", where="here")
    with pytest.raises(FormatError, match="has 20 bytes, the payload needs 21"):
        with_weights(short, lambda key: WEIGHTS[:20], where="here")
    with pytest.raises(FormatError, match="belong to byte 9999"):
        with_weights(short[:-16] + struct.pack("<I", 9999) + short[-12:], lambda key: WEIGHTS, where="here")
    with pytest.raises(FormatError, match="ends inside its header"):
        without_weights(PAYLOAD[:40], "key", where="here")
