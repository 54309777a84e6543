"""Decodes prefix codes of stored weights: RICE and STATIC (docs/storage.md), a whole stream at a time.

A regular expression built from the code's tree splits the bits, so that no line of Python runs once per weight.
"""

from __future__ import annotations

import re
from functools import lru_cache

_SYMBOLS, _UNUSED, _LONGEST, _DESCRIBED = 258, 256, 15, 8  # the last: bits of a symbol's length at most
_RUN = "\u0100", "\u0101"  # digits of a run of zeros; weights are the characters of their bytes
_NONE = "\u0200"  # marks bits that are no code
_RUNS = re.compile(f"[{''.join(_RUN)}]+")
_MOST_DIGITS = 40  # of a run, and of zeros behind it that fill a byte: no file has so many weights
_ONES = 15  # of a RICE code at most


class Damaged(ValueError):
    """No encoder writes these bytes."""


class Code:
    """A prefix code: a table from bit strings to characters."""

    def __init__(self, meaning: dict[str, str]) -> None:
        self._meaning = dict.fromkeys("01", _NONE) | meaning
        self._cut = re.compile((_tree(list(meaning)) + "|" if meaning else "") + ".")

    def weights(self, stream: bytes, count: int) -> bytes:
        """Return the `count` weights of a stream, which ends with its last code and less than a byte of zeros."""
        bits = f"{int.from_bytes(stream, 'big'):0{8 * len(stream)}b}" if stream else ""
        parts = self._cut.findall(bits)
        text = "".join(map(self._meaning.__getitem__, parts))
        # The zeros that fill the last byte may be no code, or may decode as weights.
        for extra in range(len(text) - len(text.rstrip(_NONE)), min(8, len(text) + 1)):
            made = _expand_runs(text[: len(text) - extra], count)
            if made is None:
                continue
            rest = sum(map(len, parts[len(parts) - extra :]))
            if rest >= 8 or "1" in bits[len(bits) - rest :]:
                break
            return made
        raise Damaged


def _tree(codes: list[str]) -> str:
    """Return a regular expression that matches one of these codes.

    Below a node where every code of one length exists, it matches any bits of that length.
    """
    size = len(codes[0])
    if len(codes) == 1 << size and all(len(one) == size for one in codes):
        return f".{{{size}}}" if size else ""
    sides = [(bit, [one[1:] for one in codes if one[0] == bit]) for bit in "01"]
    return f"(?:{'|'.join(bit + _tree(rest) for bit, rest in sides if rest)})"


def _expand_runs(text: str, count: int) -> bytes | None:
    """Return the weights with runs of zeros expanded; None if their number is not `count`."""
    runs = _RUNS.findall(text)
    zeros = [_zeros(run) for run in runs]
    if len(text) - sum(map(len, runs)) + sum(zeros) != count or _NONE in text:
        return None
    made = iter(zeros)
    return _RUNS.sub(lambda _: "\0" * next(made), text).encode("latin-1") if runs else text.encode("latin-1")


@lru_cache(maxsize=1024)
def _zeros(run: str) -> int:
    """How many zeros a run's digits stand for: bijective binary, the lowest first."""
    if len(run) > _MOST_DIGITS:
        raise Damaged
    return sum(_RUN.index(digit) + 1 << at for at, digit in enumerate(run))


def rice(low: int) -> Code:
    """Return the Rice code: (value >> low) ones, a zero, then the `low` lowest bits of the value."""
    meaning = {}
    for value in range(min(256, _ONES + 1 << low)):
        bits = "1" * (value >> low) + "0" + (f"{value & (1 << low) - 1:0{low}b}" if low else "")
        meaning[bits] = chr((-(value + 1 >> 1) if value & 1 else value >> 1) & 0xFF)
    return Code(meaning)


def static(stored: bytes) -> tuple[Code, int]:
    """Return the code described in front of the streams, and the number of bytes that describe it."""
    bits = "".join(f"{byte:08b}" for byte in stored[: (9 + _DESCRIBED * _SYMBOLS) // 8 + 1])
    lengths, size = _lengths(bits)
    meaning: dict[str, str] = {}
    code = 0
    for length in range(1, _LONGEST + 1):
        for symbol in (symbol for symbol, one in enumerate(lengths) if one == length):
            meaning[f"{code:0{length}b}"] = _character(symbol)
            code += 1
        if code > 1 << length:
            raise Damaged
        code <<= 1
    return Code(meaning), -(-size // 8)


def _character(symbol: int) -> str:
    if symbol == _UNUSED:
        raise Damaged
    return _RUN[symbol] if symbol < 2 else chr((-(symbol >> 1) if symbol & 1 else symbol >> 1) & 0xFF)


def _lengths(bits: str) -> tuple[list[int], int]:
    """Return the length of each symbol's code, 0 for none, and the number of bits that describe them."""
    count, at, last = int(bits[:9] or "0", 2), 9, 8
    if count > _SYMBOLS:
        raise Damaged
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
            raise Damaged
    return lengths, at
