"""Perplexity of a decoder on sequences of tokens, and how often two forms of it expect the same next token.

Example:
    >>> rows = read_sequences("tokens.npz")
    >>> measure("compiled", decoder, rows).perplexity
    4.41
"""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from openneutron.errors import FormatError, OptionError
from openneutron.files import read_file
from openneutron.language.decoder import Decoder
from openneutron.language.tokenizer import Tokenizer

_PARTS = ("test", "tokens", "x")  # of an .npz with several arrays, the first of these


@dataclass(frozen=True)
class TextScore:
    """How well a form of a model expects the next token: the mean loss over all positions, in nats.

    `answers` are the tokens it expects most, one for each position.
    """

    name: str
    loss: float
    total: int
    seconds: float
    answers: npt.NDArray[np.int64] = field(repr=False)

    @property
    def perplexity(self) -> float:
        """The exponential of the loss: among how many equally likely tokens the model hesitates."""
        return math.exp(min(self.loss, 700.0))

    def ratio(self, other: TextScore) -> float:
        """Return this perplexity against another's."""
        return math.exp(min(self.loss - other.loss, 700.0))

    def agreement(self, other: TextScore) -> float:
        """Return the share of positions at which both expect the same token."""
        return float((self.answers == other.answers).mean()) if self.total else 1.0


def read_sequences(
    path: str | os.PathLike[str], *, tokenizer: Tokenizer | None = None, part: str = ""
) -> list[list[int]]:
    """Read sequences of tokens: an .npy or .npz of integers, [length] or [sequences, length], or a .txt with a tokenizer.

    Each line of text is a sequence that begins with the tokenizer's mark; negative numbers fill up shorter rows and are left
    out. `part` names an array of an .npz.
    """
    where = os.fspath(path)
    if Path(where).suffix not in (".npy", ".npz"):
        return _of_text(read_file(path), where, tokenizer)
    read_file(path, 1)  # the error for a file that cannot be read
    try:
        with np.load(where, allow_pickle=False) as found:
            names = [part] if part else [*_PARTS, *found.files]
            data = next(found[name] for name in names if name in found.files)
    except (AttributeError, TypeError):
        data = np.load(where, allow_pickle=False)
    except StopIteration:
        raise FormatError(f"it has no array {part!r}", where=where) from None
    except Exception as error:  # NumPy raises many kinds for damaged files
        raise FormatError(f"the file is damaged ({error})", where=where) from error
    if data.dtype.kind not in "iu" or data.ndim not in (1, 2):
        raise OptionError(
            f"it holds {data.dtype} {list(data.shape)}",
            where=where,
            hint="give integers, [length] or [sequences, length]",
        )
    rows = [[int(one) for one in row if one >= 0] for row in np.atleast_2d(data)]
    return _check_sequences([row for row in rows if row], where)


def _of_text(data: bytes, where: str, tokenizer: Tokenizer | None) -> list[list[int]]:
    if tokenizer is None:
        raise OptionError("text needs a tokenizer", where=where, hint="give --tokenizer, or an .npz of token numbers")
    begin = [] if tokenizer.bos is None else [tokenizer.bos]
    try:
        lines = [line for line in data.decode().splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise FormatError(f"byte {error.start} is no text", where=where) from error
    return _check_sequences([[*begin, *tokenizer.encode(line)] for line in lines], where)


def _check_sequences(rows: list[list[int]], where: str) -> list[list[int]]:
    if not any(len(row) > 1 for row in rows):
        raise OptionError("no sequence has two tokens", where=where, hint="give longer ones")
    return [row for row in rows if len(row) > 1]


def measure(
    name: str, decoder: Decoder, rows: Sequence[Sequence[int]], *, progress: Callable[[str], None] | None = None
) -> TextScore:
    """Run each sequence from the begin of the context, at most as far as that reaches, and compare with its next tokens."""
    began, loss, answers = time.perf_counter(), 0.0, list[int]()
    for at, row in enumerate(rows):
        if progress is not None:
            progress(f"{name}: sequence {at + 1} of {len(rows)}")
        decoder.begin()
        row = row[: decoder.context + 1]
        for token in row:
            decoder.check([token])
        for token, following in itertools.pairwise(row):
            logits = decoder.feed([token]).astype(np.float64)
            top = logits.max()
            loss += float(top + np.log(np.exp(logits - top).sum()) - logits[following])
            answers.append(int(logits.argmax()))
    total = len(answers)
    return TextScore(name, loss / max(total, 1), total, time.perf_counter() - began, np.array(answers, np.int64))
