"""Pieces of bytes: any text comes back, joins follow the order of training, and a damaged file is one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from openneutron.errors import FormatError
from openneutron.language.vocabulary import BOS, EOS, Vocabulary, split_words, train_vocabulary

TEXTS = ["a cat and a hat", "the cat sat", "that hat"]


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return train_vocabulary(TEXTS, 264)


@pytest.mark.parametrize("text", ["", "the cat", "  two  spaces ", "Ünïcode → 🐈", "new\nline\x00"])
def test_any_text_comes_back(vocabulary: Vocabulary, text: str) -> None:
    tokens = vocabulary.encode(text)
    assert vocabulary.decode(tokens) == text
    assert all(1 < token < len(vocabulary) for token in tokens)


def test_frequent_pairs_are_one_token(vocabulary: Vocabulary) -> None:
    assert len(vocabulary) == 264 and vocabulary.pieces[256] == b"at"
    assert len(vocabulary.encode("hat")) < 3
    assert vocabulary.encode("zq") == [2 + ord("z"), 2 + ord("q")]


def test_marks_have_no_text(vocabulary: Vocabulary) -> None:
    assert vocabulary.decode([BOS, *vocabulary.encode("cat"), EOS]) == "cat"
    assert (vocabulary.bos, vocabulary.eos) == (BOS, (EOS,))


def test_no_piece_crosses_a_space() -> None:
    assert split_words("a  red cat") == [b"a", b" ", b" red", b" cat"]
    assert all(b" " not in piece[1:] for piece in train_vocabulary(TEXTS, 280).pieces)


def test_its_file_says_what_is_wrong(vocabulary: Vocabulary, tmp_path: Path) -> None:
    file = tmp_path / "v.json"
    file.write_text(vocabulary.to_json())
    assert Vocabulary.read(file) == vocabulary
    found = json.loads(vocabulary.to_json())
    for wrong in (
        "[]", "{", '{"pieces": 3}', json.dumps({**found, "format": "other"}),
        json.dumps({**found, "pieces": found["pieces"][1:]}), json.dumps({**found, "pieces": ["€"]}),
    ):  # fmt: skip
        file.write_text(wrong)
        with pytest.raises(FormatError, match=r"v\.json: "):
            Vocabulary.read(file)
