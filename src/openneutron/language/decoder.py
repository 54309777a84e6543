"""A decoder that runs one token a call, or several of a prompt: positions and tokens are checked before the model sees them.

Example:
    >>> decoder = Decoder(program.run, program.reset, context=256, vocabulary=512)
    >>> logits = decoder.feed([0, 17, 40])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from openneutron.errors import OptionError

Logits: TypeAlias = npt.NDArray[np.float32]


@dataclass
class Decoder:
    """A model and the position of its next token.

    `step` takes a token and its position and returns the logits of the next token; `reset` begins a new text. The model has
    `context` positions and `vocabulary` tokens; `where` names it in messages. `chunk`, where there is one, takes as many tokens
    as `chunk_size` says and the position of the first.
    """

    step: Callable[[int, int], Any]
    reset: Callable[[], None]
    context: int
    vocabulary: int
    where: str = ""
    position: int = 0
    chunk: Callable[[Sequence[int], int], Any] | None = None
    chunk_size: int = 0

    @property
    def left(self) -> int:
        """How many tokens the context can still take."""
        return self.context - self.position

    def begin(self) -> None:
        """Begin a new text."""
        self.reset()
        self.position = 0

    def feed(self, tokens: Sequence[int]) -> Logits:
        """Give tokens to the model, in chunks as long as there are enough of them, and return the logits behind the last one.

        Nothing is given where one of them is outside the vocabulary, or all do not fit the context.
        """
        self.check(tokens)
        found: Any = None
        whole = len(tokens) - len(tokens) % self.chunk_size if self.chunk is not None else 0
        for at in range(0, whole, max(self.chunk_size, 1)):
            assert self.chunk is not None
            found = self.chunk(tokens[at : at + self.chunk_size], self.position)
            self.position += self.chunk_size
        for token in tokens[whole:]:
            found = self.step(token, self.position)
            self.position += 1
        return np.asarray(found, np.float32).reshape(-1)[-self.vocabulary :]

    def check(self, tokens: Sequence[int]) -> None:
        """Refuse tokens that the model does not have, and more than the context can take."""
        if not len(tokens):
            raise OptionError("no token was given", where=self.where, hint="give at least one")
        wrong = next((token for token in tokens if not 0 <= token < self.vocabulary), None)
        if wrong is not None:
            raise OptionError(
                f"token {wrong} is outside the vocabulary of {self.vocabulary:,}", where=self.where,
                hint="use the tokenizer that the model was trained with",
            )  # fmt: skip
        if len(tokens) > self.left:
            raise OptionError(
                f"position {self.position + len(tokens) - 1:,} is beyond the context of {self.context:,} tokens",
                where=self.where, hint="give a shorter text, or begin a new one",
            )  # fmt: skip
