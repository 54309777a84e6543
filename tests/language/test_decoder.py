"""Tokens and positions are checked before the model sees any of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from openneutron.errors import OptionError
from openneutron.language.decoder import Decoder


class Model:
    """Remembers its calls; expects the token after the one it gets."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int]] = []

    def step(self, token: int, position: int) -> np.ndarray:
        self.calls.append((token, position))
        return np.eye(5, dtype=np.float32)[None, None, (token + 1) % 5]

    def decoder(self) -> Decoder:
        return Decoder(self.step, self.calls.clear, context=4, vocabulary=5, where="m.pte")


def test_tokens_go_to_their_positions() -> None:
    model = Model()
    decoder = model.decoder()
    assert decoder.feed([3, 1]).argmax() == 2 and decoder.feed([2]).shape == (5,)
    assert model.calls == [(3, 0), (1, 1), (2, 2)] and decoder.left == 1
    decoder.begin()
    assert model.calls == [] and decoder.left == 4


@pytest.mark.parametrize(
    ("tokens", "what"),
    [([], "no token"), ([0, 5], "token 5 is outside the vocabulary of 5"), ([-1], "token -1 is outside"),
     ([0] * 5, "position 4 is beyond the context of 4 tokens")],
)  # fmt: skip
def test_nothing_is_given_where_something_is_wrong(tokens: list[int], what: str) -> None:
    model = Model()
    decoder = model.decoder()
    with pytest.raises(OptionError, match=f"m.pte: .*{what}"):
        decoder.feed(tokens)
    assert model.calls == [] and decoder.position == 0


def test_prompts_go_in_chunks_and_their_rest_token_by_token() -> None:
    model, chunks = Model(), []
    decoder = model.decoder()

    def chunk(tokens: Sequence[int], position: int) -> np.ndarray:
        chunks.append((list(tokens), position))
        return np.eye(5, dtype=np.float32)[None, [(token + 1) % 5 for token in tokens]]

    decoder.chunk, decoder.chunk_size = chunk, 2
    assert decoder.feed([3, 1]).argmax() == 2 and decoder.feed([2]).argmax() == 3
    assert (chunks, model.calls, decoder.left) == ([([3, 1], 0)], [(2, 2)], 1)
    with pytest.raises(OptionError, match="position 4 is beyond"):
        decoder.feed([0, 0])
    assert len(chunks) == 1
