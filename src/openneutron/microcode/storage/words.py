"""Records as packed words: two bits say how many bytes of a 32-bit word are stored, and zeros take none.

Four words share a byte of classes, the first word in its lowest bits: 0 zero, 1 one byte and 2 two bytes (both with their
sign), 3 four bytes. The bytes of these words follow.

Example:
    >>> pack_words([0, 1, -2, 300])
    b'\\x94\\x01\\xfe,\\x01'
"""

from __future__ import annotations

from collections.abc import Sequence

from openneutron.errors import FormatError

_SIZES = (0, 1, 2, 4)


def _class_of(word: int) -> int:
    if word == 0:
        return 0
    return 1 if -128 <= word < 128 else 2 if -32768 <= word < 32768 else 3


def pack_words(words: Sequence[int]) -> bytes:
    """Signed or unsigned 32-bit words as bytes."""
    signed = [(word & 0xFFFFFFFF) - ((word & 0x80000000) << 1) for word in words]
    packed = bytearray()
    for first in range(0, len(signed), 4):
        four = signed[first : first + 4]
        packed.append(sum(_class_of(word) << 2 * at for at, word in enumerate(four)))
        for word in four:
            packed += (word & 0xFFFFFFFF).to_bytes(4, "little")[: _SIZES[_class_of(word)]]
    return bytes(packed)


def unpack_words(data: bytes | memoryview, at: int, count: int) -> tuple[list[int], int]:
    """`count` signed words from byte `at` on, and the byte behind them."""
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
