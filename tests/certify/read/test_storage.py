"""Packed words and coded constants, made by hand after docs/storage.md."""

from __future__ import annotations

import struct

import pytest

from openneutron.certify.read.storage import plain_weights, read_sections, unpack_words
from openneutron.certify.refused import WEIGHTS, Refused


def pack(values: tuple[int, ...]) -> bytes:
    """Seven words of four bytes each."""
    made = b""
    for at in range(0, len(values), 4):
        part = values[at : at + 4]
        made += bytes([sum(3 << 2 * one for one in range(len(part)))]) + struct.pack(f"<{len(part)}I", *part)
    return made


def record(storage: int, packing: int, parameter: int, width: int, plain: int, stored: int, *shape: int) -> bytes:
    (first,) = struct.unpack("<I", bytes([storage, packing, parameter, width]))
    return pack((first, plain, stored, *shape))


RAW = record(0, 0, 0, 0, 16, 16, 0, 0, 0, 0)


def test_words_have_a_class_of_two_bits_each() -> None:
    block = bytes([0b11_10_01_00]) + b"\xff" + b"\x34\x12" + b"\x78\x56\x34\x92"
    assert unpack_words(block, 0, len(block), 4) == (struct.pack("<iiiI", 0, -1, 0x1234, 0x92345678), len(block))
    for end in range(1, len(block)):
        with pytest.raises(Refused, match="packed words leave their place"):
            unpack_words(block, 0, end, 4)


def test_a_raw_section_is_its_bytes() -> None:
    data = bytes(range(16))
    assert plain_weights(RAW, data, 0, 1, 16, (1, 1)) == data
    assert read_sections(RAW, data, 0, 1, 16, (1, 1))[1:] == ([], len(RAW))


def test_columns_are_a_lowest_value_and_steps_of_some_bits() -> None:
    # One column of three rows in four: -5 + step * 2, steps 0, 1 and 3 in two bits each.
    stored = struct.pack("<iBBH", -5, 2, 1, 0) + bytes([0b11_01_00])
    block = record(4, 2, 1, 0, 16, len(stored), 0, 3, 0, 0)
    made = plain_weights(block, stored, 0, 1, 16, (4, 1))
    assert struct.unpack("<4i", made) == (-5, -3, 1, 0)
    assert read_sections(block, stored, 0, 1, 16, (4, 1))[1] == [(0, 16)], "a coded section"
    wide = struct.pack("<iBBH", -5, 31, 2, 0) + bytes(12)
    with pytest.raises(Refused, match="are damaged") as refusal:
        plain_weights(record(4, 2, 1, 0, 16, len(wide), 0, 3, 0, 0), wide, 0, 1, 16, (4, 1))
    assert (refusal.value.offset, refusal.value.block) == (0, WEIGHTS)


@pytest.mark.parametrize("storage", range(256))
def test_a_record_is_one_of_the_table_or_refused(storage: int) -> None:
    """Packing 3 and unknown storages are for no section."""
    with pytest.raises(Refused, match="makes no sense"):
        plain_weights(record(storage, 3, 1, 0, 32, 8, 0, 1, 0, 0), bytes(8), 0, 1, 32, (16, 4))


@pytest.mark.parametrize(
    ("block", "data", "size", "why"),
    [
        (RAW, bytes(15), 16, "makes no sense"), (RAW, bytes(16), 32, "sections of 16 bytes, 32 are announced"),
        (RAW, bytes(16) + b"\1", 16, "bytes that belong to no section"), (RAW, bytes(16), 8, "makes no sense"),
        (RAW[:-1], bytes(16), 16, "packed words leave"),
        (record(0, 0, 1, 0, 16, 16, 0, 0, 0, 0), bytes(16), 16, "makes no sense"),
        (record(0, 0, 0, 0, 15, 16, 0, 0, 0, 0), bytes(16), 16, "makes no sense"),
    ],
)  # fmt: skip
def test_contradictions_are_refused(block: bytes, data: bytes, size: int, why: str) -> None:
    with pytest.raises(Refused, match=why):
        plain_weights(block, data, 0, 1, size, (1, 1))
