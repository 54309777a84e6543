from __future__ import annotations

import json

from openneutron.cli.board.info import model_lines
from openneutron.modelrunner.answers import BoardModel, BoardTensor
from tests.cli.board.conftest import Plug
from tests.cli.conftest import Command
from tests.modelrunner.fakes import ConsoleBoard, FramedBoard


def test_the_runner_and_its_model_are_described(command: Command, plug: Plug) -> None:
    board = ConsoleBoard()
    board.model = b"a model"
    plug(board)
    lines = command("board", "info", "-p", "port").out.splitlines()
    assert lines == [
        "port: tflm_modelrunner",
        "input in: int8 [1, 8], 8 bytes, scale 0.5, zero point -3",
        "output a/b c: int8 [1, 8], 8 bytes, scale 0.5, zero point -3",
        "arena used: 4,096 bytes",
        "last run: 0.075 ms",
    ]


def test_a_board_without_a_model_says_so(command: Command, plug: Plug) -> None:
    plug(FramedBoard())
    assert "no model is loaded" in command("board", "info", "-p", "port").out
    shown = json.loads(command("board", "info", "-p", "port", "--json").out)
    assert shown["runner"] == "executorch_modelrunner" and shown["model"]["inputs"] == []


def test_an_order_of_memory_is_shown() -> None:
    tensor = BoardTensor("x", "int8", (1, 3, 2, 2), 12, (0, 2, 3, 1))
    assert model_lines(BoardModel((tensor,), (tensor,)))[0].endswith("in memory in the order [0, 2, 3, 1]")
