"""Records as packed words: two bits say how many bytes of a 32-bit word are stored, and zeros take none.

Four words share a byte of classes, the first word in its lowest bits: 0 zero, 1 one byte and 2 two bytes (both with their
sign), 3 four bytes. The bytes of these words follow. A word may take more bytes than it needs.

Example:
    >>> pack_words([0, 1, -2, 300])
    b'\\x94\\x01\\xfe,\\x01'
"""

from __future__ import annotations

from collections.abc import Sequence

from openneutron.errors import FormatError

_SIZES = (0, 1, 2, 4)


def pack_words(words: Sequence[int], least: Sequence[int] = ()) -> bytes:
    """Return 32-bit words in packed form; `least` is the least number of stored bytes of each word: 0, 1, 2 or 4.

    Example:
        >>> pack_words([0, 1], least=[2, 0])
        b'\\x06\\x00\\x00\\x01'
    """
    packed = bytearray()
    for first in range(0, len(words), 4):
        classes, at = len(packed), 0
        packed.append(0)
        for number, word in enumerate(words[first : first + 4], first):
            size = _SIZES.index(least[number]) if least else 0
            if word or size:
                low = word & 0xFFFFFFFF
                size = max(
                    size, 1 if low < 0x80 or low >= 0xFFFFFF80 else 2 if low < 0x8000 or low >= 0xFFFF8000 else 3
                )
                packed[classes] |= size << at
                packed += low.to_bytes(4, "little")[: _SIZES[size]]
            at += 2
    return bytes(packed)


def unpack_words(data: bytes | memoryview, at: int, count: int) -> tuple[list[int], int]:
    """Return `count` signed words from byte `at` on, and the position behind them."""
    words: list[int] = []
    while len(words) < count:
        if at >= len(data):
            raise FormatError(f"packed words end at byte {at}, {count - len(words)} are missing")
        classes, at = data[at], at + 1
        for place in range(min(4, count - len(words))):
            size = _SIZES[classes >> 2 * place & 3]
            if at + size > len(data):
                raise FormatError(f"a packed word leaves the block at byte {at}")
            words.append(int.from_bytes(data[at : at + size], "little", signed=True))
            at += size
    return words, at
