"""Three kinds of tokenizer files do the same; a wrong file, and one of another size, is one sentence."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from openneutron.errors import FormatError, OptionError
from openneutron.language.tokenizer import Tokenizer, check_size, decode_stream, load_tokenizer
from openneutron.language.vocabulary import train_vocabulary

TEXTS = ["once upon a time a cat sat on a hat", "the cat was fat and that was that"] * 20


@pytest.fixture(scope="module", params=["ours", "json", "model"])
def tokenizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    file: Path = tmp_path_factory.mktemp("tokenizer") / f"tokenizer.{request.param}"
    if request.param == "ours":
        file.write_text(train_vocabulary(TEXTS, 300).to_json())
    elif request.param == "json":
        made = pytest.importorskip("tokenizers").ByteLevelBPETokenizer()
        made.train_from_iterator(TEXTS, 300, special_tokens=["<s>", "</s>"])
        made.save(str(file))
    else:
        model = io.BytesIO()
        pytest.importorskip("sentencepiece").SentencePieceTrainer.train(
            sentence_iterator=iter(TEXTS), model_writer=model, vocab_size=40, model_type="bpe", minloglevel=2
        )
        file.write_bytes(model.getvalue())
    return load_tokenizer(file)


def test_text_comes_back_with_marks_apart(tokenizer: Tokenizer) -> None:
    tokens = list(tokenizer.encode("the cat sat"))
    assert tokenizer.decode(tokens).strip() == "the cat sat"
    assert tokenizer.bos is not None and len(tokenizer.eos) == 1
    assert not {tokenizer.bos, *tokenizer.eos} & set(tokens)
    assert max(tokens) < len(tokenizer)


def test_a_stream_is_the_text(tokenizer: Tokenizer) -> None:
    tokens = list(tokenizer.encode("a cat sat on that hat"))
    pieces = list(decode_stream(tokenizer, tokens))
    assert "".join(pieces) == tokenizer.decode(tokens) and len(pieces) == len(tokens) + 1


def test_a_character_is_shown_once_it_is_whole() -> None:
    vocabulary = train_vocabulary([], 258)
    assert list(decode_stream(vocabulary, vocabulary.encode("é!"))) == ["", "é", "!", ""]


def test_more_tokens_than_the_model_has(tokenizer: Tokenizer) -> None:
    check_size(tokenizer, len(tokenizer))
    with pytest.raises(OptionError, match=r"the tokenizer has .* tokens, the model 12"):
        check_size(tokenizer, 12)


@pytest.mark.parametrize("content", [b"", b"{", b'{"model": 1}', b"\x00\x01 nothing", b"[1]"])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "wrong"
    file.write_bytes(content)
    with pytest.raises(FormatError, match="wrong: "):
        load_tokenizer(file)
