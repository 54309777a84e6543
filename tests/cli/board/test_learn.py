from __future__ import annotations

import json
from pathlib import Path

from tests.board.test_learn import write_ledger
from tests.cli.conftest import Command


def test_errors_before_and_after_are_printed(command: Command, folder: Path) -> None:
    write_ledger(folder)
    outcome = command("board", "learn", "points.toml")
    assert outcome.code == 0
    assert "before  -23.1%" in outcome.out and "interval: times or by" in outcome.out, outcome.out
    shown = json.loads(command("board", "learn", "points.toml", "--json").out)
    assert [point["model"] for point in shown["points"]] == ["convnet.tflite", "sandwich.tflite"]
    assert all(abs(point["error_after"]) < abs(point["error_before"]) for point in shown["points"])
    assert set(shown["constants"]) >= {"mac", "softmax"}


def test_compile_takes_the_ledger(command: Command, folder: Path) -> None:
    write_ledger(folder)
    outcome = command("compile", "convnet.tflite", "--target", "mcxn94x", "--board-points", "points.toml", "--json")
    assert outcome.code == 0
    assert any("learned from 2 points" in note for note in json.loads(outcome.out)["stock"]["notes"])


def test_a_ledger_that_is_not_there_is_refused(refused, folder: Path) -> None:
    assert "no such file" in refused("board", "learn", "points.toml")
    assert "no such file" in refused("compile", "convnet.tflite", "--board-points", "points.toml")
