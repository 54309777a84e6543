"""The checker's own decoder of how microcode and constants are stored (docs/storage.md)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from openneutron.certify.read.prefix import Damaged, rice, static
from openneutron.certify.refused import Refused

_SIZES = (0, 1, 2, 4)
_RAW, _PACKED, _RICE, _STATIC, _COLUMNS = range(5)
_MOST = 1 << 28  # plain bytes of all sections


@dataclass(frozen=True)
class _Section:
    """A piece of the weights block; `at` is the byte of its record in the microcode."""

    at: int
    storage: int
    parameter: int
    width: int
    plain: int
    stored: int
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

    def damaged(self) -> Refused:
        """What is said of a section that does not make sense."""
        return Refused(f"coded constants of {self.plain} bytes are damaged", self.at)


def unpacked(block: bytes, at: int, end: int, count: int) -> tuple[bytes, int]:
    """`count` packed words from byte `at` on as plain bytes, and the byte behind them."""
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
    """Region WEIGHTS of a block whose `count` sections are described from byte `at` of the microcode on."""
    found: list[bytes] = []
    place = total = 0
    for _ in range(count):
        record, behind = unpacked(block, at, len(block), 7)
        storage, packing, parameter, width, plain, stored, *shape = struct.unpack("<4B6I", record)
        units, length = 1 if packing == 0 else array[0], array[1] if packing == 1 else 1
        section = _Section(
            at, storage, parameter, width, plain, stored, (shape[0], shape[1], shape[2], shape[3]), units, length
        )
        total += -(-section.plain // 16) * 16
        if packing > 2 or place + section.stored > len(weights) or total > _MOST or section.plain == 0:
            raise section.damaged()
        try:
            decoded = _plain(section, weights[place : place + section.stored])
        except Damaged:
            raise section.damaged() from None
        if len(decoded) != section.plain:
            raise section.damaged()
        found.append(decoded + bytes(-len(decoded) % 16))
        place += -(-section.stored // 4) * 4
        at = behind
    if total != size:
        raise Refused(f"sections of {total} bytes, {size} are announced", 104)
    return b"".join(found)


def _plain(section: _Section, stored: bytes) -> bytes:
    if section.width not in ((1, 2, 4) if section.storage in (_RICE, _STATIC) else (0,)):
        raise section.damaged()
    if section.storage == _RAW:
        return stored
    if section.storage == _COLUMNS:
        return _columns(section, stored)
    if section.storage not in (_PACKED, _RICE, _STATIC):
        raise section.damaged()
    blocks = section.groups * -(-section.channels // section.units)
    padded = -(-section.inputs // section.length) * section.length
    if blocks * section.units * section.taps * padded != section.plain or section.parameter > 7:
        raise section.damaged()
    code, at = None, 0
    if section.storage == _STATIC:
        code, at = static(stored)
    elif section.storage == _RICE:
        code = rice(section.parameter)
    index = at
    at += blocks * section.width
    made: list[bytes] = []
    for number in range(blocks):
        first = number % (blocks // section.groups) * section.units
        channels = min(section.units, section.channels - first)
        count = channels * section.taps * section.inputs
        size = count
        if code is not None:
            size = int.from_bytes(stored[index : index + section.width], "little")
            index += section.width
        stream = stored[at : at + size]
        at += size
        if at > len(stored):
            raise section.damaged()
        made.append(_padded(section, stream if code is None else code.weights(stream, count), channels))
    if at != len(stored):
        raise section.damaged()
    return b"".join(made)


def _padded(section: _Section, weights: bytes, channels: int) -> bytes:
    """[taps][inputs/N][channels][up to N] as [taps][inputs/N][M][N]."""
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
    if not 1 <= section.parameter <= 8 or section.plain % (4 * section.parameter):
        raise section.damaged()
    padded = section.plain // (4 * section.parameter)
    at = 8 * section.parameter
    if at > len(stored) or not 0 < section.channels <= padded:
        raise section.damaged()
    made = bytearray()
    for column in range(section.parameter):
        low, bits, shift, rest = struct.unpack_from("<iBBH", stored, 8 * column)
        size = -(-bits * section.channels // 8)
        if bits + shift > 32 or shift == 32 or rest or at + size > len(stored):
            raise section.damaged()
        every = int.from_bytes(stored[at : at + size], "little")
        for _ in range(section.channels):
            made += (low + ((every & (1 << bits) - 1) << shift) & 0xFFFFFFFF).to_bytes(4, "little")
            every >>= bits
        made += bytes(4 * (padded - section.channels))
        at += size
    if at != len(stored):
        raise section.damaged()
    return bytes(made)
