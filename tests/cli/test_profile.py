from __future__ import annotations

import json
from pathlib import Path

import pytest


def test_an_uncompiled_model_is_profiled_by_layer(command, folder: Path) -> None:
    outcome = command("profile", "convnet.tflite", "--trace", "t.json")
    assert outcome.code == 0
    assert "logits" in outcome.out and "ms at 324 MHz on imxrt700" in outcome.out
    events = json.loads((folder / "t.json").read_text())["traceEvents"]
    assert {event["name"] for event in events if event["ph"] == "X"} >= {"conv2d", "softmax"}


def test_a_compiled_model_gives_the_cycles_of_its_compile(command, folder: Path) -> None:
    predicted = json.loads(command("compile", "convnet.tflite", "-o", "out.tflite", "--target", "imx95", "--json").out)
    measured = json.loads(command("profile", "out.tflite", "--json").out)
    assert measured["target"] == "imx95"
    assert measured["totals"]["cycles"] == predicted["totals"]["cycles"]
    assert command("profile", "out.tflite", "--top", 1).out.count("\n  and ") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["floats.tflite"], "nothing of it runs on the NPU"),
        (["gone.pte"], "no such file"),
        (["noise.bin"], "no .pte, no .tflite"),
        (["convnet.tflite", "--trace", "t.txt"], "must end in .json"),
        (["convnet.tflite", "--target", "imx"], "unknown target 'imx'"),
        (["convnet.tflite", "--top", "0"], "Invalid value for '--top'"),
    ],
    ids=["nothing to profile", "missing", "noise", "trace", "target", "top"],
)
def test_what_cannot_be_profiled_is_refused(refused, folder: Path, arguments: list[str], message: str) -> None:
    (folder / "noise.bin").write_bytes(b"noise" * 9)
    assert message in refused("profile", *arguments)
