from __future__ import annotations

import json
from pathlib import Path

import pytest

from openneutron.cli.main import run


def test_a_grid_from_the_command_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "sweep",
        "convnet.tflite",
        "--target",
        "imxrt700,mcxn94x",
        "--fit",
        "none,4K",
        "--workers",
        "1",
        "-o",
        "out",
    ]
    assert run(words) == 0
    text = capsys.readouterr().out
    assert "4 of 4 variants ok, 0 known before; out/index.html" in text and "A board sees" in text
    assert "open ms of a LiteRT file are the NPU's alone" in text
    assert {"results.csv", "results.jsonl", "index.html"} <= {file.name for file in Path("out").iterdir()}
    assert run([*words, "--json"]) == 0
    assert [row["fit_bytes"] for row in json.loads(capsys.readouterr().out)] == [None, 4096] * 2


def test_a_toml_and_a_variant_that_fails(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("s.toml").write_text(
        '[[model]]\nsource = "convnet.tflite"\n[grid]\ntarget = ["mcxn94x"]\nfit = ["none", 10]\n'
    )
    assert run(["sweep", "s.toml", "--workers", "1", "-o", "out", "--no-reports"]) == 1
    text = capsys.readouterr().out
    assert "1 of 2 variants ok" in text and "convnet.tflite target=mcxn94x fit_bytes=10: failed:" in text
    assert not Path("out", "reports").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing.tflite"], "there is no such file"),
        (["convnet.tflite", "--target", "imxrt7"], "imxrt7"),
        (["convnet.tflite", "--argument", "width=1"], "--argument is for factories"),
        (["nets:make", "--argument", "width"], "--argument is 'width'"),
        (["convnet.tflite", "--workers", "-1"], "--workers"),
    ],
)
def test_mistakes_are_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert run(["sweep", *words, "-o", "out"]) == 2
    text = capsys.readouterr().err
    assert message in text and text.count("\n") == 1
