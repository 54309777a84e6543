from __future__ import annotations

import json
from pathlib import Path

import pytest

from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from tests import tiny
from tests.cli.board.conftest import Plug
from tests.cli.conftest import Command
from tests.compat.nxp_file import converted
from tests.modelrunner.fakes import LiteRtBoard, PayloadBoard


@pytest.fixture
def nxp(folder: Path) -> Path:
    path = folder / "npu.tflite"
    path.write_bytes(write_model(converted(read_model(tiny.convnet()))))
    return path


def test_a_converted_file_is_compared_with_its_source(command: Command, nxp: Path, plug: Plug) -> None:
    plug(LiteRtBoard(tiny.convnet()))
    outcome = command("board", "check", nxp, "-p", "port", "--reference", "convnet.tflite")
    assert outcome.code == 0
    assert outcome.out.startswith("scores: equals LiteRT's exact values on 15 values of 3 inputs\n")


def test_a_wrong_byte_is_named_and_the_exit_code_is_one(command: Command, nxp: Path, plug: Plug) -> None:
    plug(LiteRtBoard(tiny.convnet(), lambda data: data[:3] + bytes([data[3] ^ 0x40]) + data[4:]))
    line = ("board", "check", nxp, "-p", "port", "--reference", "convnet.tflite", "--samples", 1)
    outcome = command(*line)
    assert outcome.code == 1
    assert "1 of 5 values of 1 input differ from LiteRT's exact values; the worst by 64 at [0, 3]" in outcome.out
    shown = json.loads(command(*line, "--json").out)
    assert shown["equal"] == [] and shown["comparisons"]["exact"][0][0]["first_byte"] == 3


def test_open_microcode_is_its_own_reference(command: Command, folder: Path, plug: Plug) -> None:
    plug(PayloadBoard())
    assert command("compile", "convnet.tflite", "-o", "out.tflite").code == 0
    outcome = command("board", "check", "out.tflite", "-p", "port", "--json")
    assert outcome.code == 0 and "exact" in json.loads(outcome.out)["equal"]


def test_a_plain_model_is_its_own_reference(command: Command, folder: Path, plug: Plug) -> None:
    plug(LiteRtBoard(tiny.floats()))
    outcome = command("board", "check", "floats.tflite", "-p", "port", "--samples", 1)
    assert outcome.code == 0 and "equals LiteRT's exact values" in outcome.out


def test_without_a_reference_nxps_microcode_cannot_be_compared(refused, nxp: Path, plug: Plug) -> None:
    plug(LiteRtBoard(tiny.convnet()))
    assert "name the model it came from" in refused("board", "check", nxp, "-p", "port")
