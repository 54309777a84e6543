"""Tokenizers: text to token numbers and back, from the files that models come with.

Three kinds of file: our own plain vocabulary, `tokenizer.json` of Hugging Face's tokenizers, and SentencePiece's `.model`.

Example:
    >>> tokenizer = load_tokenizer("tokenizer.json")
    >>> tokenizer.decode(tokenizer.encode("Once upon a time"))
    'Once upon a time'
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from openneutron.errors import FormatError, OptionError
from openneutron.extras import extra
from openneutron.files import read_file
from openneutron.language.vocabulary import FORMAT, Vocabulary

# What tokenizers call the marks of a text's begin and end; a file says nothing about which of its pieces they are.
_BEGINS: Final = ("<s>", "<|begin_of_text|>", "<bos>", "<|startoftext|>", "[BOS]")
_ENDS: Final = (
    "</s>", "<|end_of_text|>", "<|eot_id|>", "<eos>", "<|endoftext|>", "<|im_end|>", "<end_of_turn>", "[EOS]",
)  # fmt: skip
_UNFINISHED: Final = "\ufffd"  # what bytes decode to that begin a character


class Tokenizer(Protocol):
    """Text to token numbers and back; `bos` begins a text (None: nothing does), each of `eos` ends one."""

    @property
    def bos(self) -> int | None: ...
    @property
    def eos(self) -> tuple[int, ...]: ...
    def __len__(self) -> int: ...
    def encode(self, text: str) -> Sequence[int]: ...
    def decode(self, tokens: Iterable[int]) -> str: ...


@dataclass(frozen=True)
class _Json:
    """A tokenizer of Hugging Face's format."""

    made: Any

    def __len__(self) -> int:
        return int(self.made.get_vocab_size())

    @property
    def bos(self) -> int | None:
        return next(iter(self._known_tokens(_BEGINS)), None)

    @property
    def eos(self) -> tuple[int, ...]:
        return self._known_tokens(_ENDS)

    def encode(self, text: str) -> Sequence[int]:
        return list(self.made.encode(text, add_special_tokens=False).ids)

    def decode(self, tokens: Iterable[int]) -> str:
        return str(self.made.decode(list(tokens)))

    def _known_tokens(self, names: Iterable[str]) -> tuple[int, ...]:
        found = (self.made.token_to_id(name) for name in names)
        return tuple(one for one in found if one is not None)


@dataclass(frozen=True)
class _SentencePiece:
    """A SentencePiece model."""

    made: Any

    def __len__(self) -> int:
        return int(self.made.get_piece_size())

    @property
    def bos(self) -> int | None:
        number = int(self.made.bos_id())
        return None if number < 0 else number

    @property
    def eos(self) -> tuple[int, ...]:
        number = int(self.made.eos_id())
        return () if number < 0 else (number,)

    def encode(self, text: str) -> Sequence[int]:
        return list(self.made.encode(text))

    def decode(self, tokens: Iterable[int]) -> str:
        return str(self.made.decode(list(tokens)))


def load_tokenizer(path: str | os.PathLike[str]) -> Tokenizer:
    """Read a tokenizer; its content says of which kind it is."""
    where, data = os.fspath(path), read_file(path)
    if not data:
        raise FormatError("the file is empty", where=where)
    if data.lstrip()[:1] != b"{":
        return _read_sentencepiece(data, where)
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the tokenizer is damaged ({error})", where=where) from error
    if found.get("format") == FORMAT:
        return Vocabulary.from_json(data, where)
    with extra("a tokenizer.json"):
        from tokenizers import Tokenizer as Made
    try:
        return _Json(Made.from_str(data.decode()))
    except Exception as error:  # the package raises plain exceptions
        raise FormatError(f"the tokenizer cannot be read ({_first_line(error)})", where=where) from error


def _read_sentencepiece(data: bytes, where: str) -> Tokenizer:
    with extra("a SentencePiece model"):
        from sentencepiece import SentencePieceProcessor
    try:
        return _SentencePiece(SentencePieceProcessor(model_proto=data))
    except Exception as error:  # the package raises plain exceptions
        raise FormatError(
            f"neither JSON nor a SentencePiece model ({_first_line(error)})", where=where,
            hint="give a tokenizer.json, a .model of SentencePiece, or a vocabulary of openneutron's",
        ) from error  # fmt: skip


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def check_size(tokenizer: Tokenizer, vocabulary: int, where: str = "") -> None:
    """Refuse a tokenizer that has tokens which the model does not have."""
    if len(tokenizer) > vocabulary:
        raise OptionError(
            f"the tokenizer has {len(tokenizer):,} tokens, the model {vocabulary:,}", where=where,
            hint="give the tokenizer that the model was trained with",
        )  # fmt: skip


def decode_stream(tokenizer: Tokenizer, tokens: Iterable[int]) -> Iterator[str]:
    """Yield the text of each token as it comes, "" where a character is not complete.

    Example:
        >>> "".join(decode_stream(tokenizer, tokens)) == tokenizer.decode(tokens)
        True
    """
    seen: list[int] = []
    shown = ""
    for token in tokens:
        seen.append(token)
        text = tokenizer.decode(seen)
        piece = "" if text.endswith(_UNFINISHED) else text[len(shown) :]
        shown += piece
        yield piece
    yield tokenizer.decode(seen)[len(shown) :]
