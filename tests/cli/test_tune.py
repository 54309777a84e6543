"""`openneutron tune` as people call it; the search itself is tested in tests/executorch/analyze."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from openneutron.executorch.analyze import tune as search
from openneutron.executorch.quality.goals import Measure
from openneutron.executorch.quantize.choices import Choices

TRIALS = (
    search.Trial("as it is", Choices(), Measure(28.0, 0.8), kept=True),
    search.Trial("biases corrected", Choices(correct_bias=True), Measure(36.0, 0.9), kept=True, cycles=1.0),
)


@pytest.fixture(params=[True, False], ids=["reached", "not reached"])
def reached(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    found = search.Tuned(TRIALS[1].choices, TRIALS[1].measure, Measure(120.0, 0.9), request.param, 1.0, TRIALS)
    monkeypatch.setattr(search, "tune", lambda *args, **more: found)
    return bool(request.param)


def test_the_file_and_the_exit_code_say_what_was_found(command, folder: Path, reached: bool) -> None:
    outcome = command("tune", "cifarnet", "--sqnr", "30", "-o", "q.toml")
    assert outcome.code == (0 if reached else 1)
    assert ("not reached" in outcome.out) != reached and "--quantization q.toml" in outcome.out
    text = Path("q.toml").read_text("utf-8")
    assert text.startswith("# openneutron tune cifarnet:") and "correct_bias = true\n" in text and "[[tried]]" in text
    out = command("tune", "cifarnet", "--sqnr", "30", "-o", "q.toml", "--json", "--force").out
    assert json.loads(out)["reached"] is reached and [row["kept"] for row in json.loads(out)["tried"]] == [True, True]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("cifarnet", "-o", "q.toml"), "one goal"),
        (("cifarnet", "--sqnr", "30", "--drop", "0.1", "-o", "q.toml"), "one goal"),
        (("story_decoder", "--perplexity", "0.9", "-o", "q.toml"), "from 1 on"),
        (("cifarnet", "--perplexity", "1.1", "-o", "q.toml"), "no text to measure"),
        (("cifarnet", "--perplexity", "1.1", "--data", "tokens.npy", "-o", "q.toml"), "no decoder"),
        (("story_decoder", "--perplexity", "1.1", "--data", "tokens.npy", "-o", "q.toml"), "token 512 is outside"),
        (("cifarnet", "--drop", "3", "-o", "q.toml"), "share from 0 to 1"),
        (("cifarnet", "--sqnr", "30", "-o", "q.txt"), ".toml"),
        (("nothing", "--sqnr", "30", "-o", "q.toml"), "nothing"),
        (("cifarnet", "--sqnr", "30", "--quantization", "no.toml", "-o", "q.toml"), "no.toml"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_meant_is_refused_before_anything_slow(refused, folder: Path, words, message: str) -> None:
    np.save("tokens.npy", np.array([3, 512, 4]))
    assert message in refused("tune", *words) and not Path("q.toml").exists()
