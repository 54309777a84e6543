"""Perplexity by its definition, over sequences that begin anew, from files of tokens or text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from openneutron.errors import OpenNeutronError
from openneutron.language.decoder import Decoder
from openneutron.language.perplexity import measure, read_sequences
from openneutron.language.vocabulary import train_vocabulary


def decoder(certainty: float, context: int = 8) -> Decoder:
    """Expects token + 1 of four, with so much probability; the others share the rest."""

    def step(token: int, position: int) -> np.ndarray:
        shares = np.full(4, (1 - certainty) / 3)
        shares[(token + 1) % 4] = certainty
        return np.log(shares)

    return Decoder(step, lambda: None, context, 4)


def test_it_is_the_geometric_mean_of_the_choices() -> None:
    rows = [[0, 1, 2, 3], [1, 2, 1]]
    score = measure("half", decoder(0.5), rows)
    wanted = (0.5**4 * (0.5 / 3)) ** (-1 / 5)
    assert score.perplexity == pytest.approx(wanted) and score.total == 5
    sure = measure("sure", decoder(0.7), rows)
    assert sure.ratio(score) == pytest.approx(sure.perplexity / score.perplexity)
    assert sure.agreement(score) == 1.0
    assert list(score.answers) == [1, 2, 3, 2, 3]


def test_a_row_longer_than_the_context_ends_with_it() -> None:
    assert measure("short", decoder(0.5, context=2), [[0, 1, 2, 3]]).total == 2


def test_a_token_outside_the_vocabulary() -> None:
    with pytest.raises(OpenNeutronError, match="token 9 is outside"):
        measure("wrong", decoder(0.5), [[0, 9, 1]])
    with pytest.raises(OpenNeutronError, match="token 9 is outside"):
        measure("wrong", decoder(0.5), [[0, 1, 9]])


def test_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", calibration=[[7, 7]], test=[[0, 1, 2], [3, 1, -1]])
    assert read_sequences(tmp_path / "t.npz") == [[0, 1, 2], [3, 1]]
    assert read_sequences(tmp_path / "t.npz", part="calibration") == [[7, 7]]
    np.save(tmp_path / "t.npy", np.arange(4, dtype=np.uint16))
    assert read_sequences(tmp_path / "t.npy") == [[0, 1, 2, 3]]
    vocabulary = train_vocabulary([], 258)
    (tmp_path / "t.txt").write_text("ab\n\nc\n")
    assert read_sequences(tmp_path / "t.txt", tokenizer=vocabulary) == [
        [0, *vocabulary.encode("ab")],
        [0, 2 + ord("c")],
    ]


def test_files_that_do_not_serve(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(b"PK\x03\x04 damaged")
    (tmp_path / "b.npy").write_bytes(b"nothing")
    np.save(tmp_path / "c.npy", np.zeros(3))
    np.save(tmp_path / "d.npy", np.zeros(1, int))
    (tmp_path / "e.txt").write_text("text")
    np.savez(tmp_path / "f.npz")
    for name in ("a.npz", "b.npy", "c.npy", "d.npy", "e.txt", "f.npz", "missing.npz"):
        with pytest.raises(OpenNeutronError, match=name):
            read_sequences(tmp_path / name)
