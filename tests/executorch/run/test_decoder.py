"""A compiled decoder from Python and from the command line: text, figures, perplexity, and what is refused."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from executorch.exir import to_edge

import openneutron as on
from openneutron.analyze.text import score_text
from openneutron.cli.main import run
from openneutron.cli.shared.text_scores import plain_text_score, text_table
from openneutron.errors import OpenNeutronError, OptionError
from openneutron.executorch.capture.sources import Loaded
from openneutron.executorch.run.decoder import decoder_of
from openneutron.executorch.run.runtime import load_program
from openneutron.generation import writer_of
from openneutron.language.sampling import Sampling
from openneutron.language.vocabulary import train_vocabulary
from tests import decoders

CONTEXT, VOCABULARY = decoders.SHAPE.context, decoders.SHAPE.vocabulary


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A compiled decoder and its vocabulary."""
    folder = tmp_path_factory.mktemp("decoder")
    decoders.program().save(folder / "decoder.pte")
    (folder / "vocabulary.json").write_text(decoders.vocabulary().to_json())
    return folder / "decoder.pte", folder / "vocabulary.json"


def test_all_of_it_is_one_graph() -> None:
    report = decoders.program().report
    assert [node.operator for node in report.nodes if not node.delegated] == [
        "quantized_decomposed.dequantize_per_tensor.default"
    ]
    assert report.totals.neutron_graphs == 1
    speed, reads, bound = (note for note in report.notes if note.startswith("text: "))
    heads, width = decoders.SHAPE.shared_heads, decoders.SHAPE.head_width
    cache = 2 * decoders.SHAPE.layers * CONTEXT * heads * width * 2  # keys and values of two bytes
    assert f"the cache of {cache:,} bytes: {cache // CONTEXT} for each of {CONTEXT} positions" in reads
    assert f"prompt of {CONTEXT} after" in speed and "bound by" in bound


def test_it_tells_runners_what_they_ask() -> None:
    constants = load_program(decoders.program().pte).constants
    assert constants["get_max_seq_len"] == CONTEXT and constants["get_vocab_size"] == VOCABULARY
    assert constants["use_kv_cache"] is True and constants["enable_dynamic_shape"] is False
    assert constants["get_bos_id"] == 0 and constants["get_eos_ids"] == [1, 5]


def test_a_second_text_begins_anew(files: tuple[Path, Path]) -> None:
    decoder = decoder_of(load_program(files[0]), "decoder.pte")
    first = [decoder.feed([token]).copy() for token in (3, 9, 20)]
    decoder.begin()
    again = [decoder.feed([token]).copy() for token in (3, 9, 20)]
    assert np.array_equal(first, again) and not np.array_equal(first[0], first[2])


def test_compiled_it_expects_what_float_expects() -> None:
    samples = decoders.calibration()
    loaded = Loaded("small", decoders.decoder(), samples[0], samples)
    rows = np.random.default_rng(0).integers(0, VOCABULARY, (3, CONTEXT)).tolist()
    floating, compiled = score_text(decoders.program(), loaded, rows)
    assert compiled.total == floating.total == 3 * (CONTEXT - 1)
    assert compiled.ratio(floating) == pytest.approx(1, abs=0.1) and compiled.agreement(floating) > 0.8
    with torch.no_grad():
        logits = decoders.decoder().without_cache(torch.tensor(rows))[:, :-1]
    wanted = torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.tensor(rows)[:, 1:].flatten())
    assert floating.loss == pytest.approx(float(wanted), rel=1e-4)
    assert plain_text_score(compiled, floating)["ratio"] == compiled.ratio(floating)
    assert text_table([floating, compiled]).row_count == 2


def test_text_is_streamed_until_the_context_is_full() -> None:
    made = on.generate(
        decoders.program(), "the hat", tokenizer=decoders.vocabulary(), tokens=50, temperature=1.5, seed=4
    )
    pieces = list(made)
    assert (
        len(made.prompt) + len(made.tokens) == CONTEXT + 1 and made.ended == f"the context of {CONTEXT} tokens is full"
    )
    assert "".join(pieces) == decoders.vocabulary().decode(made.tokens)
    assert made.tokens_per_second > 0 and made.prompt_seconds > 0
    again = on.generate(
        decoders.program(), "the hat", tokenizer=decoders.vocabulary(), tokens=50, temperature=1.5, seed=4
    )
    assert again.text == "".join(pieces)


def test_a_mark_of_the_end_ends_it(files: tuple[Path, Path]) -> None:
    writer = writer_of(*files)
    every = frozenset(range(VOCABULARY))
    made = type(writer)(writer.decoder, writer.tokenizer, writer.bos, every).write("a", tokens=3, sampling=Sampling())
    assert made.text == "" and made.ended == "the text has ended"


def test_what_is_refused(files: tuple[Path, Path], tmp_path: Path) -> None:
    ours = decoders.vocabulary()
    with pytest.raises(OptionError, match=f"position 19 is beyond the context of {CONTEXT} tokens"):
        on.generate(files[0], "z" * 19, tokenizer=ours)
    with pytest.raises(OptionError, match="the tokenizer has 280 tokens, the model 264"):
        on.generate(files[0], "a", tokenizer=train_vocabulary(["ab abc abcd abcde abcdefghijklmnopqrstuvwxyz"], 280))
    with pytest.raises(OptionError, match="0 tokens were asked for"):
        on.generate(files[0], "a", tokenizer=ours, tokens=0)
    with pytest.raises(OpenNeutronError, match=r"missing\.pte"):
        on.generate(tmp_path / "missing.pte", "a", tokenizer=ours)
    with pytest.raises(OptionError, match="the model is a int"):
        on.generate(3, "a", tokenizer=ours)  # type: ignore[arg-type]
    other = to_edge(torch.export.export(torch.nn.ReLU(), (torch.ones(2),))).to_executorch()
    (tmp_path / "other.pte").write_bytes(bytes(other.buffer))
    with pytest.raises(OptionError, match="it is no decoder"):
        on.generate(tmp_path / "other.pte", "a", tokenizer=ours)


def test_chat(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["chat", str(files[0]), "--tokenizer", str(files[1]), "--tokens", "4"]
    assert run([*words, "--prompt", "the", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["prompt"] == "the" and found["context"] == CONTEXT and found["position"] > 1
    low, high = found["estimated_interval"]
    assert 0 < low < found["estimated_tokens_per_second"] < high
    assert found["simulated_tokens_per_second"] > 0

    monkeypatch.setattr("sys.stdin", iter_lines("the", "", "hat"))
    assert run(words) == 0
    shown = capsys.readouterr().out
    assert shown.count("tokens/s in the simulator") == 2 and "NPU, open schedule" in " ".join(shown.split())
    assert run([*words, "--prompt", "z" * 40]) == 2
    assert "beyond the context" in capsys.readouterr().err


def iter_lines(*lines: str) -> io.StringIO:
    """An input of some lines that is no terminal."""
    return io.StringIO("".join(f"{line}\n" for line in lines))


def test_evaluate_says_what_it_needs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["evaluate", "cifarnet", "--perplexity"]) == 2
    assert "there is no text to measure" in capsys.readouterr().err
    (tmp_path / "a.txt").write_text("text")
    assert run(["evaluate", "story_decoder", "--perplexity", "--data", str(tmp_path / "a.txt")]) == 2
    assert "text needs a tokenizer" in capsys.readouterr().err
