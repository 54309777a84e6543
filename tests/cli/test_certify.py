from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import Command


def test_a_compile_can_be_certified(folder: Path, command: Command) -> None:
    assert command("compile", "convnet.tflite", "-o", "out.tflite", "--certificate", "proof.json").code == 0
    outcome = command("certify", "proof.json", "out.tflite")
    assert outcome.code == 0 and "proved" in outcome.out and "out.tflite" in outcome.out
    assert command("certify", "proof.json").code == 0
    found = json.loads(command("certify", "proof.json", "out.tflite", "--json").out)
    assert found["proved"] and found["calls"] > 0 and found["model"] == "out.tflite"


def test_a_certificate_of_another_file_is_refused(folder: Path, command: Command) -> None:
    command("compile", "convnet.tflite", "-o", "out.tflite", "--certificate", "proof.json")
    command("compile", "convnet.tflite", "-o", "other.tflite", "--target", "mcxn94x")
    outcome = command("certify", "proof.json", "other.tflite")
    assert outcome.code == 1 and "refused" in outcome.err and "other.tflite" in outcome.err
    outcome = command("certify", "proof.json", "convnet.tflite")
    assert outcome.code == 1 and "the file has 0" in outcome.err


def test_a_broken_certificate_is_refused(folder: Path, command: Command) -> None:
    command("compile", "convnet.tflite", "-o", "out.tflite", "--certificate", "proof.json")
    document = json.loads(Path("proof.json").read_text())
    document["graphs"][0]["tasks"].pop()
    Path("proof.json").write_text(json.dumps(document))
    outcome = command("certify", "proof.json")
    assert outcome.code == 1 and outcome.err.startswith("openneutron: proof.json: refused:")
    outcome = command("certify", "proof.json", "--json")
    assert (outcome.code, outcome.err) == (1, "") and json.loads(outcome.out)["refused"]


def test_what_is_no_certificate(folder: Path, refused: Callable[..., str]) -> None:
    Path("text.json").write_text("{")
    assert "no JSON" in refused("certify", "text.json")
    assert "no such file" in refused("certify", "none.json")
    assert "LiteRT model and the open converter" in refused("compile", "cifarnet", "--certificate", "proof.json")
    assert ".json" in refused("compile", "convnet.tflite", "--certificate", "proof.txt")
