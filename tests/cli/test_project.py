"""`openneutron project`: a folder, a summary, and sentences for what cannot be done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from openneutron.cli.main import run
from tests import tiny

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.tflite").write_bytes(tiny.convnet())
    return tmp_path


def test_the_summary_has_the_boards_memory(here: Path, capsys: Capture) -> None:
    assert run(["project", "model.tflite", "--for", "cmake", "--board", "frdmmcxn947", "-o", "made"]) == 0
    shown = capsys.readouterr().out
    assert "made: model.tflite for FRDM-MCXN947, cmake" in shown
    assert "of 786,432 bytes" in shown and "of 319,488 bytes" in shown
    text = (here / "made" / "README.md").read_text()
    assert "`openneutron project model.tflite --for cmake --board frdmmcxn947 --samples 2 --seed 0`" in text


def test_json_lists_the_files(here: Path, capsys: Capture) -> None:
    assert (
        run(["project", "model.tflite", "--for", "cmake", "--board", "m55", "-o", "made", "--samples", "3", "--json"])
        == 0
    )
    made = json.loads(capsys.readouterr().out)
    assert {Path(one) for one in made["files"]} == {
        path.relative_to(here) for path in (here / "made").rglob("*") if path.is_file()
    }
    assert (made["samples"], made["board"]["core"]) == (3, "cortex-m55")


def test_a_folder_in_the_way_is_kept_until_force(here: Path, capsys: Capture) -> None:
    words = ["project", "model.tflite", "--for", "cmake", "--board", "m33", "-o", "made"]
    assert run(words) == 0
    (here / "made" / "notes.txt").write_text("mine")
    assert run(words) == 2
    assert "made: the folder is not empty" in capsys.readouterr().err
    assert run([*words, "--force"]) == 0
    assert not (here / "made" / "notes.txt").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("project absent.tflite --for cmake --board m33 -o made", "absent.tflite: there is no such file"),
        ("project model.tflite --for make --board m33 -o made", "unknown platform 'make'"),
        ("project model.tflite --for cmake --board z80 -o made", "unknown board 'z80'"),
        ("project model.tflite --for cmake --board m33 -o made --input absent.npy", "absent.npy"),
        ("project made.npy --for cmake --board m33 -o made", "made.npy"),
    ],
)
def test_wrong_options_make_nothing(here: Path, capsys: Capture, words: str, sentence: str) -> None:
    assert run(words.split()) == 2
    assert sentence in capsys.readouterr().err
    assert not (here / "made").exists()
