from __future__ import annotations

import json
from pathlib import Path

import pytest

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
    outcome = command("bisect", "small_model:factory")
    assert (outcome.code, outcome.err) == (0, "")
    assert "Layers by what their quantization costs" in outcome.out and "per_channel=True" in outcome.out
    found = json.loads(command("bisect", "small_model:factory", "--json").out)
    assert found["quantized"]["accuracy"] == -1 and found["layers"] and found["fixes"]


def test_what_cannot_be_bisected_is_refused(refused, folder: Path) -> None:
    assert "quantized already" in refused("bisect", "convnet.tflite")
    assert "the zoo has no model" in refused("bisect", "cifarnett")
