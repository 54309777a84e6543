"""The checker's own decoder of how microcode and constants are stored (docs/storage.md)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from openneutron.certify.refused import Refused

_SIZES = (0, 1, 2, 4)
_RAW, _PACKED, _RICE, _STATIC, _COLUMNS = range(5)
_SYMBOLS, _UNUSED, _LONGEST = 258, 256, 15
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
        decoded = _plain(section, weights[place : place + section.stored])
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
    codes: dict[str, int] = {}
    at = 0
    if section.storage == _STATIC:
        codes, at = _codes(section, stored)
    index = at
    at += blocks * section.width
    made: list[bytes] = []
    for number in range(blocks):
        first = number % (blocks // section.groups) * section.units
        channels = min(section.units, section.channels - first)
        count = channels * section.taps * section.inputs
        size = count
        if section.storage != _PACKED:
            size = int.from_bytes(stored[index : index + section.width], "little")
            index += section.width
        stream = stored[at : at + size]
        at += size
        if at > len(stored):
            raise section.damaged()
        weights = _weights(section, stream, codes, count)
        if len(weights) != count:
            raise section.damaged()
        made.append(_padded(section, weights, channels))
    if at != len(stored):
        raise section.damaged()
    return b"".join(made)


def _weights(section: _Section, stream: bytes, codes: dict[str, int], count: int) -> bytes:
    """The weights of one block, without padding."""
    if section.storage == _PACKED:
        return stream
    bits = f"{int.from_bytes(stream, 'big'):0{8 * len(stream)}b}" if stream else ""
    weights, at = (_rice if section.storage == _RICE else _static)(section, bits, codes, count)
    if at > len(bits) or len(bits) - at >= 8 or "1" in bits[at:]:
        raise section.damaged()
    return bytes(weights)


def _rice(section: _Section, bits: str, _: dict[str, int], count: int) -> tuple[bytearray, int]:
    made, at, low = bytearray(), 0, section.parameter
    for _one in range(count):
        stop = bits.find("0", at)
        value = (stop - at << low) | int(bits[stop + 1 : stop + 1 + low] or "0", 2)
        if stop < 0 or value > 255 or low > 7 or stop - at > 15:
            raise section.damaged()
        made.append((-(value + 1 >> 1) if value & 1 else value >> 1) & 0xFF)
        at = stop + 1 + low
    return made, at


def _static(section: _Section, bits: str, codes: dict[str, int], count: int) -> tuple[bytearray, int]:
    made, at, digit = bytearray(), 0, 0
    sizes = sorted({len(code) for code in codes})
    while len(made) < count:
        symbol = next((codes[bits[at : at + size]] for size in sizes if bits[at : at + size] in codes), None)
        if symbol is None:
            raise section.damaged()
        at += next(size for size in sizes if bits[at : at + size] in codes)
        if symbol < 2:
            zeros = symbol + 1 << digit
            if len(made) + zeros > count:
                raise section.damaged()
            made += bytes(zeros)
            digit += 1
        else:
            made.append((-(symbol >> 1) if symbol & 1 else symbol >> 1) & 0xFF)
            digit = 0
    return made, at


def _codes(section: _Section, stored: bytes) -> tuple[dict[str, int], int]:
    """Symbols by their codes, and the bytes that describe them."""
    bits = "".join(f"{byte:08b}" for byte in stored[: _SYMBOLS + 4])
    count, at, last = int(bits[:9] or "0", 2), 9, 8
    lengths: list[int] = []
    while len(lengths) < count:
        ones = 4 - len(bits[at : at + 4].lstrip("1")) if at + 4 <= len(bits) else 5
        if ones == 4:
            last = int(bits[at + 4 : at + 8] or "0", 2)
        elif ones < 3:
            last += (0, 1, -1)[ones]
        at += 8 if ones == 4 else ones + 1
        lengths.append(0 if ones == 3 else last)
        if not 0 < last <= _LONGEST or ones > 4:
            raise section.damaged()
    codes: dict[str, int] = {}
    code = 0
    for length in range(1, _LONGEST + 1):
        for symbol, one in enumerate(lengths):
            if one == length:
                codes[f"{code:0{length}b}"] = symbol
                code += 1
        if code > 1 << length:
            raise section.damaged()
        code <<= 1
    if _UNUSED in codes.values() or count > _SYMBOLS:
        raise section.damaged()
    return codes, -(-at // 8)


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
