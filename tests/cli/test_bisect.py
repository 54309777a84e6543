from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from openneutron.cli.bisect import proposal
from openneutron.executorch.analyze.bisect import Bisection, Fix, Price
from openneutron.executorch.quality.goals import Measure

MODEL = """
import torch

def factory():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(64, 3))
    inputs = [(torch.randn(1, 2, 6, 6),) for _ in range(4)]
    return model.eval(), inputs[0], inputs
"""


def test_layers_and_fixes_are_listed(command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "small_model.py").write_text(MODEL)
    monkeypatch.syspath_prepend(folder)
    outcome = command("bisect", "small_model:factory", "--target", "")
    assert (outcome.code, outcome.err) == (0, "")
    assert "Layers by what their quantization costs" in outcome.out and "--correct-bias" in outcome.out
    found = json.loads(command("bisect", "small_model:factory", "--target", "", "--json").out)
    assert found["quantized"]["accuracy"] == -1 and found["layers"] and found["fixes"]
    assert " ".join(found["proposal"].split()) in " ".join(outcome.out.split())
    assert {name for layer in found["layers"] for name in layer["modules"]} >= {"0", "3"}


def fix(how: str, sqnr: float) -> Fix:
    return Fix(how, how, Measure(sqnr, 0.9), how)


@pytest.mark.parametrize(
    ("fixes", "sentence"),
    {
        "on the NPU": (
            [("per_channel=True", 33.0), ("observer='minmax'", 20.0)],
            r"Propose: `openneutron compile … per_channel=True` gains 3.0 dB, \+10.0 points of accuracy$",
        ),
        "on the CPU": (
            [("exclude=['0']", 35.0), ("per_channel=True", 30.0)],
            r"exclude=\['0'\]` gains 5.0 dB.*then runs on the CPU$",
        ),
        "both": (
            [("exclude=['0']", 35.0), ("per_channel=True", 31.0)],
            r"per_channel=True` gains 1.0 dB.*; or .*exclude.*then running on the CPU$",
        ),
        "none": ([("per_channel=True", 30.05)], "None of these changes helps"),
    }.values(),
    ids=["on the NPU", "on the CPU", "both", "none"],
)
def test_a_change_is_proposed(fixes: list[tuple[str, float]], sentence: str) -> None:
    made = Bisection(Measure(120.0, 0.95), Measure(30.0, 0.8), (), tuple(fix(*one) for one in fixes))
    assert re.search(sentence, proposal(made))


def test_the_cheapest_change_comes_first() -> None:
    def priced(how: str, sqnr: float, cycles: int) -> Fix:
        return replace(fix(how, sqnr), price=Price(cycles, 100, 100))

    fixes = (
        priced("activations='int16'", 60.0, 1910),
        priced("precision={'head': 'int16'}", 18.0, 1010),
        priced("precision={'head': 'int16', 'stem': 'int16'}", 26.0, 1100),
    )
    made = Bisection(Measure(120.0), Measure(15.0), (), fixes, Price(1000, 100, 100))
    said = proposal(made)
    assert said.index("x 1.01") < said.index("x 1.10") and "x 1.91" not in said


def test_what_cannot_be_bisected_is_refused(refused, folder: Path) -> None:
    assert "quantized already" in refused("bisect", "convnet.tflite")
    assert "the zoo has no model" in refused("bisect", "cifarnett")
