"""A few bytes may say that they stand for many: decoding takes memory for what the section has, and no more."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.errors import FormatError
from openneutron.microcode.header import pack
from openneutron.microcode.storage import bits, prefix
from openneutron.microcode.storage.sections import read_sections
from openneutron.microcode.storage.words import pack_words
from openneutron.microcode.table import FREE_PLAIN_BYTES, MAX_PLAIN_BYTES, SECTION, Packing, Storage

FORM = {"packing": int(Packing.FLAT), "parameter": 0, "width": 0, "groups": 1, "channels": 1, "taps": 1, "inputs": 1}


def decoded(storage: Storage, stored: bytes, **fields: int) -> bytes:
    """The plain bytes of one section."""
    record = pack(SECTION, **{**FORM, "storage": int(storage), "stored": len(stored), **fields})
    words = [int.from_bytes(record[at : at + 4], "little") for at in range(0, len(record), 4)]
    return read_sections(pack_words(words), 0, 1, stored, 8, 8)[1]


def test_runs_of_zeros_longer_than_their_blocks() -> None:
    """Sixty-four streams of one weight, each of which says 2^28 of them."""
    lengths = np.zeros(prefix.SYMBOLS, np.int64)
    lengths[:2] = 1
    digits = np.zeros(28, np.int64)
    stream, _ = bits.write(digits, np.ones(28, np.int64), np.array([0]))
    stored = prefix.write_lengths(lengths) + bytes([len(stream)] * 64) + stream * 64
    assert decoded(Storage.STATIC, stored, width=1, plain=64, groups=64) == bytes(64)


@pytest.mark.parametrize("storage", [Storage.RICE, Storage.STATIC])
def test_more_streams_than_bytes(storage: Storage) -> None:
    stored = prefix.write_lengths(np.where(np.arange(prefix.SYMBOLS) < 2, 1, 0)) + bytes(4)
    with pytest.raises(FormatError, match=f"for {FREE_PLAIN_BYTES} streams in "):
        decoded(storage, stored, width=1, plain=FREE_PLAIN_BYTES, groups=FREE_PLAIN_BYTES)


@pytest.mark.parametrize("plain", [FREE_PLAIN_BYTES + 4, MAX_PLAIN_BYTES])
def test_gigabytes_of_next_to_nothing(plain: int) -> None:
    """More than anybody may ask for is decoded only where a share of it is stored."""
    form = {"packing": int(Packing.LANES), "groups": 0, "taps": 0, "inputs": 0}
    with pytest.raises(FormatError, match="of which 8 are stored"):
        decoded(Storage.COLUMNS, bytes(8), parameter=1, plain=plain, channels=plain // 4, **form)


def test_columns_without_bits() -> None:
    """2^25 channels in the eight bytes that one column's head takes."""
    form = {"packing": int(Packing.LANES), "groups": 0, "taps": 0, "inputs": 0}
    plain = decoded(Storage.COLUMNS, b"\7" + bytes(7), parameter=1, plain=1 << 27, channels=1 << 25, **form)
    assert plain[:8] == b"\7\0\0\0\7\0\0\0" and len(plain) == 1 << 27


def test_fewer_weights_than_described() -> None:
    with pytest.raises(FormatError, match="5 of 16 weights are stored"):
        decoded(Storage.PACKED, bytes(5), plain=16, taps=16)
