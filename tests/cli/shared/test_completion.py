from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from openneutron.cli.shared.completion import efforts, model_names, target_names

WORDS = {
    "a command": (["inspe"], "inspect"),
    "an option": (["compile", "--optim"], "--optimize"),
    "a target": (["compile", "x.tflite", "--target", "mc"], "mcxn94x"),
    "a model of the zoo": (["compile", "cifarn"], "cifarnet"),
}


@pytest.mark.parametrize("name", WORDS)
def test_the_shell_is_offered(name: str, tmp_path: Path) -> None:
    words, wanted = WORDS[name]
    line = " ".join(["openneutron", *words])
    asked = {"_OPENNEUTRON_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words))}
    code = "from openneutron.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | asked, capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.stdout.split() == [wanted], done.stderr


def test_files_and_folders_are_offered_beside_the_zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    for name in ("mine.tflite", "mine.txt", "mine.onnx", "models/other.pt2", ".hidden.tflite"):
        (tmp_path / name).write_text("")
    assert model_names("mi") == ["mine.onnx", "mine.tflite"]
    assert "models/" in model_names("mo") and "mobilenet_v2" in model_names("mo")
    assert model_names("models/") == ["models/other.pt2"]
    assert ".hidden.tflite" not in model_names("")
    assert model_names("nowhere/x") == []
    assert target_names("imxrt") == ["imxrt2660", "imxrt700"] and efforts("f") == ["fast"]
