"""Decodes stored microcode words and constants (docs/storage.md), independent of the compiler's decoder."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from openneutron.certify.published import SECTION_FORMS
from openneutron.certify.read.prefix import Code, Damaged, rice, static
from openneutron.certify.refused import WEIGHTS, Refused

_SIZES = (0, 1, 2, 4)
_RAW, _PACKED, _RICE, _STATIC, _COLUMNS, _GROUPS = range(6)

_VALUES = (*range(128), *range(-128, 0))  # by byte
_FACTORS = range(17)  # 0 is no factor
_INSIDE = [bytes(value & 0xFF for value in _VALUES if -128 <= value * factor <= 127) for factor in _FACTORS]
_TIMES = [bytes(value * factor & 0xFF for value in _VALUES) for factor in _FACTORS]


@dataclass(frozen=True)
class _Section:
    """A piece of the weights block: byte `record` of the microcode describes it, it begins at byte `at` of the block."""

    record: int
    at: int
    storage: int
    parameter: int
    width: int
    plain: int
    shape: tuple[int, int, int, int]  # groups, channels, taps, inputs
    units: int
    length: int

    @property
    def groups(self) -> int:
        """Channel groups."""
        return self.shape[0]

    @property
    def channels(self) -> int:
        """Output channels of a group, or channels of a table."""
        return self.shape[1]

    @property
    def taps(self) -> int:
        """Taps of a window."""
        return self.shape[2]

    @property
    def inputs(self) -> int:
        """Inputs of a group."""
        return self.shape[3]

    def record_refusal(self) -> Refused:
        """Return the refusal of an invalid section record."""
        return Refused(f"the record of coded constants of {self.plain} bytes makes no sense", self.record)

    def damage_refusal(self, at: int) -> Refused:
        """Return the refusal of damaged stored bytes, `at` bytes from the section's beginning."""
        return Refused(f"coded constants of {self.plain} bytes are damaged", self.at + at, WEIGHTS)


def unpack_words(block: bytes, at: int, end: int, count: int) -> tuple[bytes, int]:
    """Return `count` packed words from byte `at` on as plain bytes, and the position behind them."""
    words = bytearray()
    classes = 0
    for word in range(count):
        if word % 4 == 0:
            if at >= end:
                raise Refused("packed words leave their place", at)
            classes = block[at]
            at += 1
        size = _SIZES[classes & 3]
        if at + size > end:
            raise Refused("packed words leave their place", at)
        value = int.from_bytes(block[at : at + size], "little", signed=True)
        words += (value & 0xFFFFFFFF).to_bytes(4, "little")
        classes >>= 2
        at += size
    return bytes(words), at


def plain_weights(block: bytes, weights: bytes, at: int, count: int, size: int, array: tuple[int, int]) -> bytes:
    """Return the decoded WEIGHTS region; the microcode describes its `count` sections from byte `at` on."""
    return read_sections(block, weights, at, count, size, array)[0]


def read_sections(
    block: bytes, weights: bytes, at: int, count: int, size: int, array: tuple[int, int]
) -> tuple[bytes, list[tuple[int, int]], int]:
    """Return the decoded WEIGHTS region, the places of coded sections in it, and the byte behind their table."""
    coded: list[tuple[int, int]] = []
    found: list[bytes] = []
    place = total = 0
    for number in range(count):
        record, behind = unpack_words(block, at, len(block), 7)
        storage, packing, parameter, width, plain, stored, *shape = struct.unpack("<4B6I", record)
        units, length = 1 if packing == 0 else array[0], array[1] if packing == 1 else 1
        section = _Section(
            at, place, storage, parameter, width, plain, (shape[0], shape[1], shape[2], shape[3]), units, length
        )
        if storage != _RAW:
            coded.append((total, total + -(-plain // 16) * 16))
        total += -(-plain // 16) * 16
        packings, least, most, widths, sizes = SECTION_FORMS.get(storage, ((), 1, 0, (), ()))
        formed = packing in packings and least <= parameter <= most and width in widths
        if (
            not formed
            or tuple(size > 0 for size in shape) != sizes
            or place + stored > len(weights)
            or total > size
            or plain == 0
        ):
            raise section.record_refusal()
        decoded = _plain(section, weights[place : place + stored])
        if len(decoded) != plain:
            raise section.record_refusal()
        found.append(decoded + bytes(-plain % 16))
        end = place + stored
        place = len(weights) if number == count - 1 else place + -(-stored // 4) * 4
        if any(weights[end:place]):
            raise Refused("bytes that belong to no section", end, WEIGHTS)
        at = behind
    if total != size:
        raise Refused(f"sections of {total} bytes, {size} are announced", 100)
    return b"".join(found), coded, at


def _plain(section: _Section, stored: bytes) -> bytes:
    if section.storage == _RAW:
        return stored
    if section.storage == _COLUMNS:
        return _columns(section, stored)
    blocks = section.groups * -(-section.channels // section.units)
    padded = -(-section.inputs // section.length) * section.length
    if blocks * section.units * section.taps * padded != section.plain:
        raise section.record_refusal()
    grouped = section.storage == _GROUPS
    if grouped and (1 << section.parameter) % section.length:
        raise section.record_refusal()
    code, index = _code(section, stored)
    at = index + blocks * section.width
    made: list[bytes] = []
    for number in range(blocks):
        first = number % (blocks // section.groups) * section.units
        channels = min(section.units, section.channels - first)
        count = channels * section.taps * section.inputs
        size = count
        if code is not None:
            size = int.from_bytes(stored[index : index + section.width], "little")
            index += section.width
        if at + size > len(stored):
            raise section.damage_refusal(index - section.width)
        stream = stored[at : at + size]
        factors = _factors(section, stream, channels) if grouped else []
        if factors is None:
            raise section.damage_refusal(at)
        try:
            weights = stream if code is None else code.weights(stream[len(factors) + 1 >> 1 :], count)
        except Damaged:
            raise section.damage_refusal(at) from None
        if grouped:
            weights = _multiply(section, weights, channels, factors)
        if len(weights) != count:
            raise section.damage_refusal(at)
        made.append(_pad_channels(section, weights, channels))
        at += size
    if at != len(stored):
        raise section.damage_refusal(at)
    return b"".join(made)


def _code(section: _Section, stored: bytes) -> tuple[Code | None, int]:
    """Return the code of the streams, and the number of bytes that describe it."""
    if section.storage == _RICE:
        return rice(section.parameter), 0
    try:
        return static(stored) if section.storage in (_STATIC, _GROUPS) else (None, 0)
    except Damaged:
        raise section.damage_refusal(0) from None


def _factors(section: _Section, stream: bytes, channels: int) -> list[int] | None:
    """Return the factors in front of a stream, [taps][groups of inputs][channels]; None where they are damaged."""
    count = channels * section.taps * -(-section.inputs // (1 << section.parameter))
    digits = stream[: count + 1 >> 1].hex()
    if len(digits) < count or digits[count:] not in ("", "0"):
        return None
    return [int(digit, 16) + 1 for digit in digits[:count]]


def _multiply(section: _Section, quotients: bytes, channels: int, factors: list[int]) -> bytes:
    """Return quotients stored as [taps][inputs/N][channels][up to N] times their factors; fewer where one leaves INT8."""
    groups = len(factors) // (channels * section.taps)
    made, at = bytearray(), 0
    for tap in range(section.taps):
        for first in range(0, section.inputs, section.length):
            count = min(section.length, section.inputs - first)
            place = (tap * groups + (first >> section.parameter)) * channels
            for factor in factors[place : place + channels]:
                quotient = quotients[at : at + count]
                if quotient.translate(None, _INSIDE[factor]):
                    return b""
                made += quotient.translate(_TIMES[factor])
                at += count
    return bytes(made)


def _pad_channels(section: _Section, weights: bytes, channels: int) -> bytes:
    """Return weights stored as [taps][inputs/N][channels][up to N] in the layout [taps][inputs/N][M][N]."""
    if channels == section.units and section.inputs % section.length == 0:
        return weights
    made, at = bytearray(), 0
    for _ in range(section.taps):
        for first in range(0, section.inputs, section.length):
            count = min(section.length, section.inputs - first)
            for _channel in range(channels):
                made += weights[at : at + count] + bytes(section.length - count)
                at += count
            made += bytes((section.units - channels) * section.length)
    return bytes(made)


def _columns(section: _Section, stored: bytes) -> bytes:
    if section.plain % (4 * section.parameter):
        raise section.record_refusal()
    padded = section.plain // (4 * section.parameter)
    at = 8 * section.parameter
    if at > len(stored) or not 0 < section.channels <= padded:
        raise section.record_refusal()
    made = bytearray()
    for column in range(section.parameter):
        low, bits, shift, rest = struct.unpack_from("<iBBH", stored, 8 * column)
        size = -(-bits * section.channels // 8)
        if bits + shift > 32 or shift == 32 or rest or at + size > len(stored):
            raise section.damage_refusal(8 * column)
        text = f"{int.from_bytes(stored[at : at + size], 'little'):0{8 * size}b}"
        ends = range(len(text), len(text) - bits * section.channels, -bits) if bits else ()
        steps = [int(text[end - bits : end], 2) for end in ends] or [0] * section.channels
        made += struct.pack(f"<{section.channels}I", *(low + (step << shift) & 0xFFFFFFFF for step in steps))
        made += bytes(4 * (padded - section.channels))
        at += size
    if at != len(stored):
        raise section.damage_refusal(at)
    return bytes(made)
