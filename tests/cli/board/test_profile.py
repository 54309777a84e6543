from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from openneutron.board.ledger import read_ledger
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from tests import tiny
from tests.cli.board.conftest import Plug
from tests.cli.conftest import Command
from tests.compat.nxp_file import converted
from tests.modelrunner.fakes import LiteRtBoard


@pytest.fixture
def nxp(folder: Path) -> Path:
    model = converted(read_model(tiny.convnet()))
    model.description = "Converted with eIQ neutron-converter\nVersion: 3.1.0+0X359f358d\nTarget: mcxn94x"
    (folder / "npu.tflite").write_bytes(write_model(model))
    return folder / "npu.tflite"


def test_times_and_layers_are_printed(command: Command, nxp: Path, plug: Plug) -> None:
    plug(LiteRtBoard(tiny.convnet()))
    out = command("board", "profile", nxp, "-p", "port", "--runs", 3).out
    assert out.startswith("0.075 ms, the median of 3 runs (0.075 to 0.075), measured by the board\n")
    assert "     0.050 ms  66.7%  NPU  NeutronGraph" in out


def test_a_point_is_added_to_a_ledger_and_another_after_it(command: Command, nxp: Path, plug: Plug) -> None:
    plug(LiteRtBoard(tiny.convnet()))
    line = ("board", "profile", nxp, "-p", "port", "--ledger", "points.toml", "--source", "convnet.tflite")
    for note in ("", "EVK of the lab"):
        outcome = command(*line, "--chip", "MCXN947", "--runs", 2, "--note", note)
        assert outcome.code == 0 and "added to points.toml" in outcome.out, outcome
    first, second = read_ledger("points.toml")
    assert (first.model, first.chip, first.milliseconds) == ("convnet.tflite", "mcxn94x", (0.075, 0.075))
    assert first.sha256 == hashlib.sha256(tiny.convnet()).hexdigest()
    assert (first.converter, first.npu_hz, first.arena_bytes) == ("3.1.0+0X359f358d", 150_000_000, 4_096)
    assert first.layers == {"npu": 0.05, "soft": 0.025} and second.source == "EVK of the lab"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--ledger needs --chip and --source"),
        (("--chip", "mcxn94x"), "--ledger needs --source"),
        (("--chip", "z80", "--source", "convnet.tflite"), "unknown target 'z80'"),
        (("--chip", "mcxn94x", "--source", "none.tflite"), "there is no such file"),
        (("--chip", "imxrt700", "--source", "convnet.tflite"), "it was converted for mcxn94x, and --chip is imxrt700"),
        (
            ("--chip", "mcxn94x", "--source", "sandwich.tflite"),
            "its inputs and outputs are not those of sandwich.tflite",
        ),
    ],
)
def test_a_point_without_its_facts_is_refused_before_anything_is_sent(
    refused, nxp: Path, plug: Plug, arguments: tuple[str, ...], message: str
) -> None:
    line = plug(LiteRtBoard(tiny.convnet()))
    assert message in refused("board", "profile", nxp, "-p", "port", "--ledger", "points.toml", *arguments)
    assert not line.written and not Path("points.toml").exists()


def test_open_microcode_is_no_point(command: Command, refused, nxp: Path, plug: Plug) -> None:
    plug(LiteRtBoard(tiny.convnet()))
    assert command("compile", "convnet.tflite", "-o", "out.tflite").code == 0
    assert "this is open microcode" in refused(
        "board", "profile", "out.tflite", "-p", "port", "--ledger", "points.toml"
    )


def test_as_json(command: Command, nxp: Path, plug: Plug) -> None:
    plug(LiteRtBoard(tiny.convnet()))
    shown = json.loads(command("board", "profile", nxp, "-p", "port", "--runs", 1, "--json").out)
    assert shown["milliseconds"] == [0.075] and shown["layers"][1]["kind"] == "SOFTMAX"
