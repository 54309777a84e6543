"""A vocabulary of pieces of bytes: text to token numbers and back, and its plain file.

Text begins as single bytes. Of all neighbouring pairs that together are a piece, the one with the lowest number is joined,
until no pair is left; so the order of the pieces is the order in which training found them. Every byte is a piece, and no
text is unknown.

Example:
    >>> vocabulary = Vocabulary.read("stories.json")
    >>> vocabulary.decode(vocabulary.encode("Once upon a time"))
    'Once upon a time'
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

from openneutron.errors import FormatError
from openneutron.files import read_file

FORMAT: Final = "openneutron vocabulary 1"
BOS: Final = 0
EOS: Final = 1
_SPECIAL: Final = ("<s>", "</s>")  # their numbers are BOS and EOS; pieces of bytes follow


@dataclass(frozen=True)
class Vocabulary:
    """The pieces of bytes by number, behind the two that mark the begin and the end of a text."""

    pieces: tuple[bytes, ...]

    def __len__(self) -> int:
        return len(_SPECIAL) + len(self.pieces)

    @property
    def bos(self) -> int:
        """The number that begins a text."""
        return BOS

    @property
    def eos(self) -> tuple[int, ...]:
        """The numbers that end a text."""
        return (EOS,)

    @cached_property
    def _numbers(self) -> dict[bytes, int]:
        return {piece: at for at, piece in enumerate(self.pieces, len(_SPECIAL))}

    def encode(self, text: str) -> list[int]:
        """Return the token numbers of a text, without marks of its begin or end."""
        found: list[int] = []
        for word in split_words(text):
            found += _join([bytes([byte]) for byte in word], self._numbers)
        return found

    def decode(self, tokens: Iterable[int]) -> str:
        """Return the text of token numbers; marks of begin and end have none."""
        return self.decode_bytes(tokens).decode("utf-8", "replace")

    def decode_bytes(self, tokens: Iterable[int]) -> bytes:
        """Return the bytes of token numbers, for a stream whose characters can be cut between two tokens."""
        first = len(_SPECIAL)
        return b"".join(self.pieces[one - first] for one in tokens if first <= one < len(self))

    def to_json(self) -> str:
        """Return the contents of its file: a character from U+0000 to U+00FF for each byte."""
        pieces = [piece.decode("latin-1") for piece in self.pieces]
        return json.dumps({"format": FORMAT, "pieces": pieces}, indent=0) + "\n"

    @classmethod
    def from_json(cls, data: bytes, where: str) -> Vocabulary:
        """Return the vocabulary that `to_json` wrote; what else is in the file is an error that names `where`."""
        try:
            found = json.loads(data)
            pieces = tuple(piece.encode("latin-1") for piece in found["pieces"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise FormatError(f"this is no vocabulary ({error})", where=where) from error
        if found.get("format") != FORMAT:
            raise FormatError(f"format is {found.get('format')!r}, not {FORMAT!r}", where=where)
        if len(set(pieces)) != len(pieces) or not {bytes([byte]) for byte in range(256)} <= set(pieces):
            raise FormatError("pieces are there twice, or some of the 256 single bytes are not", where=where)
        return cls(pieces)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Vocabulary:
        """Return the vocabulary of a file."""
        return cls.from_json(read_file(path), os.fspath(path))


def split_words(text: str) -> list[bytes]:
    """Return a text in parts that no piece crosses: each begins where a space does.

    Example:
        >>> split_words("a  red cat")
        [b'a', b' ', b' red', b' cat']
    """
    parts = text.encode("utf-8", "replace").split(b" ")
    return [part if at == 0 else b" " + part for at, part in enumerate(parts) if part or at]


def train_vocabulary(texts: Iterable[str], size: int) -> Vocabulary:
    """Return a vocabulary of `size` tokens: every byte, and the pairs of pieces that are most frequent, one after the other."""
    words = Counter(word for text in texts for word in split_words(text))
    split = {word: [bytes([byte]) for byte in word] for word in words}
    pieces = [bytes([byte]) for byte in range(256)]
    while len(pieces) + len(_SPECIAL) < size:
        pairs: Counter[tuple[bytes, bytes]] = Counter()
        for word, count in words.items():
            for pair in pairwise(split[word]):
                pairs[pair] += count
        if not pairs:
            break
        first, second = min(pairs, key=lambda pair: (-pairs[pair], pair))
        pieces.append(first + second)
        split = {word: _join_pair(parts, first, second) for word, parts in split.items()}
    return Vocabulary(tuple(pieces))


def _join_pair(parts: list[bytes], first: bytes, second: bytes) -> list[bytes]:
    found: list[bytes] = []
    for part in parts:
        if found and found[-1] == first and part == second:
            found[-1] = first + second
        else:
            found.append(part)
    return found


def _join(parts: list[bytes], numbers: dict[bytes, int]) -> Sequence[int]:
    while True:
        known = [(numbers.get(a + b), at) for at, (a, b) in enumerate(pairwise(parts))]
        best = min(((number, at) for number, at in known if number is not None), default=None)
        if best is None:
            return [numbers[part] for part in parts]
        at = best[1]
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
