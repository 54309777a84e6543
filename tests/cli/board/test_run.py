from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from openneutron.run.runner import LiteRtRunner
from tests import tiny
from tests.cli.board.conftest import Plug
from tests.cli.conftest import Command
from tests.modelrunner.fakes import ConsoleBoard, LiteRtBoard, PayloadBoard


def test_a_litert_model_runs_on_a_board(command: Command, folder: Path, plug: Plug) -> None:
    plug(LiteRtBoard(tiny.convnet()))
    x = np.random.default_rng(1).integers(-128, 128, (1, 8, 8, 3), np.int8)
    np.save(folder / "x.npy", x)
    outcome = command("board", "run", "convnet.tflite", "-p", "port", "--input", "x.npy", "-o", "y.npy")
    assert outcome.code == 0 and "the board measured 0.075 ms" in outcome.out, outcome
    (wanted,) = LiteRtRunner(tiny.convnet()).run([x]).outputs.values()
    assert (np.load(folder / "y.npy") == wanted).all()


def test_open_microcode_is_sent_as_a_payload(command: Command, folder: Path, plug: Plug) -> None:
    plug(PayloadBoard())
    assert command("compile", "convnet.tflite", "-o", "out.tflite").code == 0
    outcome = command("board", "run", "out.tflite", "-p", "port", "--json")
    shown = json.loads(outcome.out)
    assert shown["outputs"]["output_0"] == {"dtype": "int8", "shape": [1, 5]}
    assert "NXP's driver refuses it" in shown["notes"][0]


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("out.tflite", "out.tflite is for the other runner, and port has tflm_modelrunner"),
        ("nothing.tflite", "there is no such file"),
        ("text.pte", "a board takes .pte and .tflite files"),
    ],
)
def test_files_that_this_board_does_not_take(
    command: Command, refused, folder: Path, plug: Plug, file: str, message: str
) -> None:
    line = plug(ConsoleBoard())
    (folder / "text.pte").write_text("text")
    if file == "out.tflite":
        assert command("compile", "convnet.tflite", "-o", "out.tflite").code == 0
    assert message in refused("board", "run", file, "-p", "port")
    assert b"model_loadb" not in line.written


def test_an_unknown_board_is_refused_whatever_the_file_is(command: Command, refused, folder: Path) -> None:
    assert command("compile", "convnet.tflite", "-o", "out.tflite").code == 0
    for file in ("convnet.tflite", "out.tflite"):
        assert "unknown board 'nope'" in refused("board", "run", file, "-p", "port", "--board", "nope")


def test_a_model_with_work_between_its_graphs_is_refused(command: Command, refused, folder: Path, plug: Plug) -> None:
    plug(PayloadBoard())
    assert command("compile", "sandwich.tflite", "-o", "out.tflite").code == 0
    assert "it has 2 NeutronGraphs" in refused("board", "run", "out.tflite", "-p", "port")
