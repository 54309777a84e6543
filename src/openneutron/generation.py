"""`openneutron.generate`: text from a compiled decoder, token by token.

Example:
    >>> for piece in generate(program, "Once upon a time", tokenizer="tokenizer.json", tokens=100):
    ...     print(piece, end="", flush=True)
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from openneutron.errors import OptionError
from openneutron.extras import extra
from openneutron.language.decoder import Decoder
from openneutron.language.sampling import Sampling
from openneutron.language.tokenizer import Tokenizer, check_size, decode_stream, load_tokenizer
from openneutron.program import Program

if TYPE_CHECKING:
    from openneutron.executorch.run.runtime import LoadedProgram


@dataclass
class Generation:
    """Text that is written while it is iterated; `tokens` are those written so far, `seconds` what the model took for them."""

    pieces: Iterator[str]
    prompt: Sequence[int]
    tokens: list[int] = field(default_factory=list)
    seconds: float = 0.0
    prompt_seconds: float = 0.0
    ended: str = ""

    def __iter__(self) -> Iterator[str]:
        return self.pieces

    @property
    def text(self) -> str:
        """Everything that is still to be written."""
        return "".join(self.pieces)

    @property
    def tokens_per_second(self) -> float:
        """How many tokens the simulator wrote in a second; no figure of a board."""
        return len(self.tokens) / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class Writer:
    """A decoder with its tokenizer, how it chooses tokens, and the marks of a text's begin and end."""

    decoder: Decoder
    tokenizer: Tokenizer
    bos: int | None
    eos: frozenset[int]

    def write(self, prompt: str, *, tokens: int, sampling: Sampling, seed: int = 0) -> Generation:
        """Write up to so many tokens behind a prompt; a text that is begun already goes on."""
        given = list(self.tokenizer.encode(prompt))
        if self.decoder.position == 0 and self.bos is not None:
            given.insert(0, self.bos)
        if tokens < 1:
            raise OptionError(f"{tokens} tokens were asked for", hint="give 1 or more")
        self.decoder.check(given)
        made = Generation(iter(()), given)
        made.pieces = decode_stream(self.tokenizer, self._next(made, tokens, sampling.chooser(seed)))
        return made

    def _next(self, made: Generation, tokens: int, choose: Callable[[Any], int]) -> Iterator[int]:
        began = time.perf_counter()
        logits = self.decoder.feed(made.prompt)
        made.prompt_seconds = time.perf_counter() - began
        while True:
            began = time.perf_counter()
            token = choose(logits)
            made.seconds += time.perf_counter() - began
            if token in self.eos:
                made.ended = "the text has ended"
                return
            made.tokens.append(token)
            yield token
            if len(made.tokens) == tokens:
                made.ended = f"{tokens} tokens were asked for"
                return
            if not self.decoder.left:
                made.ended = f"the context of {self.decoder.context:,} tokens is full"
                return
            began = time.perf_counter()
            logits = self.decoder.feed([token])
            made.seconds += time.perf_counter() - began


def generate(
    model: Program | str | os.PathLike[str],
    prompt: str,
    *,
    tokenizer: Tokenizer | str | os.PathLike[str],
    tokens: int = 128,
    temperature: float = 0.0,
    top_p: float = 1.0,
    seed: int = 0,
) -> Generation:
    """Write text behind a prompt with a compiled decoder: iterate over the result for its pieces as they come.

    `model` is a `Program` or a .pte whose inputs are one token and its position. `tokenizer` is one, or its file: a
    tokenizer.json, a .model of SentencePiece, or a vocabulary of ours. `tokens` is the most that is written; a mark of the
    text's end or a full context end it earlier. With `temperature` 0 the likeliest token is taken.

    Example:
        >>> generate("decoder.pte", "Once upon", tokenizer="tokenizer.json", tokens=5).text
        ' a time, there'
    """
    sampling = Sampling(temperature, top_p)
    return writer_of(model, tokenizer).write(prompt, tokens=tokens, sampling=sampling, seed=seed)


def writer_of(model: Program | str | os.PathLike[str], tokenizer: Tokenizer | str | os.PathLike[str]) -> Writer:
    """Load a decoder and its tokenizer; the marks of begin and end are the program's, or else the tokenizer's."""
    given_by_file = isinstance(tokenizer, (str, os.PathLike))
    from openneutron.executorch.run.decoder import decoder_of

    found = load_tokenizer(tokenizer) if isinstance(tokenizer, (str, os.PathLike)) else tokenizer
    loaded, where = _load(model)
    decoder = decoder_of(loaded, where)
    check_size(found, decoder.vocabulary, os.fspath(tokenizer) if given_by_file else where)  # type: ignore[arg-type]
    bos, eos = loaded.constants.get("get_bos_id", found.bos), loaded.constants.get("get_eos_ids", found.eos)
    return Writer(decoder, found, bos, frozenset(eos if isinstance(eos, (list, tuple)) else [eos]))


def _load(model: Program | str | os.PathLike[str]) -> tuple[LoadedProgram, str]:
    with extra("a language model"):
        from openneutron.executorch.run.runtime import load_program

    if isinstance(model, Program):
        where = model.report.source or "<pte>"
        return load_program(model.pte, where=where), where
    if not isinstance(model, (str, os.PathLike)):
        raise OptionError(f"the model is a {type(model).__name__}", hint="give a Program, or the path of a .pte")
    return load_program(model), os.fspath(model)
