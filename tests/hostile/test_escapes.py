"""Names from a file cannot command the terminal they are shown on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from openneutron import console
from openneutron.cli.main import run
from openneutron.litert import DType, GraphBuilder, write_model

NAME = "x\x1b[2J\x1b]0;owned\x07\x9b31m\u202e"
BAD = ("\x1b", "\x07", "\x9b", "\u202e")


def hostile(folder: Path) -> Path:
    g = GraphBuilder()
    x, y = (g.tensor(f"{NAME}{side}", (1, 4), DType.INT8, 0.1, 0) for side in "xy")
    g.op("RELU", [x], [y])
    file = folder / "x.tflite"
    file.write_bytes(write_model(g.finish([x], [y])))
    return file


@pytest.mark.parametrize("verb", ["inspect", "compile", "run", "verify"])
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_the_terminal_gets_text(
    verb: str, more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run([verb, str(hostile(tmp_path)), *more]) == 0
    shown = capsys.readouterr()
    assert not any(one in shown.out + shown.err for one in BAD)
    if more:
        json.loads(shown.out)


def test_errors_and_names_of_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compile", str(tmp_path / f"{NAME}.tflite")]) == 2
    err = capsys.readouterr().err
    assert "\\u001b[2J" in err and not any(one in err for one in BAD)


def test_text_that_commands_nothing_stays() -> None:
    assert console.printable("µs\tα → 中 é\n") == "µs\tα → 中 é\n"
