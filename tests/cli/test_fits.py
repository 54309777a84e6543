from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from benchmarks.board_networks import BOARD_NETWORKS
from openneutron.cli.fits import parse_milliseconds
from openneutron.cli.main import run
from openneutron.cli.shared.fitting import by_module
from openneutron.errors import OptionError
from openneutron.executorch import pipeline
from openneutron.report.model import Report
from tests.report.samples import report


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "cifarnet.tflite"
    path.write_bytes(BOARD_NETWORKS["cifarnet"]())
    return str(path)


def test_one_screen_for_all_chips(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fits", model]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in ("imx95", "imxrt700", "mcxn94x", "stock", "open", "44,832"))
    assert "stock: what NXP's converter makes today, all that a board runs" in text


def test_the_exit_code_says_no_and_the_text_why(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fits", model, "--target", "mcxn94x", "--sram", "40K"]) == 1
    text = capsys.readouterr().out
    assert "3,872 bytes of SRAM short" in text and "the open schedule" in text


def test_the_documentation_prints_what_this_prints(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fits", model, "--target", "mcxn94x", "--sram", "40K"]) == 1
    page = (Path(__file__).parents[2] / "docs" / "board.md").read_text()
    printed = {" ".join(line.split()) for line in page.splitlines()}
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert [line for line in lines[:-1] if line not in printed] == []


def test_one_sentence_for_a_model_of_which_nothing_runs_on_the_npu(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["fits", str(folder / "floats.tflite")]) == 1
    assert capsys.readouterr().out.count("nothing of it runs on the NPU") == 1


def test_the_open_schedule_of_a_file_is_the_npu_alone(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fits", model, "--target", "imxrt700"]) == 0
    stock, ours = (line for line in capsys.readouterr().out.splitlines() if line.startswith(" imxrt700"))
    assert "(NPU)" in ours and "(NPU)" not in stock


def test_json_has_every_row(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fits", model, "--target", "mcxn94x", "--target", "imxrt700", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["fits"] and [row["target"] for row in answer["rows"]] == ["mcxn94x"] * 2 + ["imxrt700"] * 2


@pytest.mark.parametrize(
    "options",
    [["--target", "imx943"], ["--target", "nothing"], ["--sram", "much"], ["--latency", "soon"], ["--flash", "0"]],
    ids=lambda options: "-".join(options),
)
def test_what_cannot_be_used_is_one_line(model: str, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fits", model, *options]) == 2
    captured = capsys.readouterr()
    assert not captured.out and len(captured.err.strip().splitlines()) == 1


def test_layers_are_called_by_their_modules() -> None:
    first = report().kernels[0]
    made = Report(kernels=(dataclasses.replace(first, name="aten_addmm_default", module="head.fc"),))
    said = "weights of aten_addmm_default (640 bytes) with aten_addmm_default_1 (9 bytes)"
    assert by_module(said, made) == "weights of head.fc (640 bytes) with aten_addmm_default_1 (9 bytes)"


@pytest.mark.parametrize(("text", "wanted"), [("20", 20.0), ("20ms", 20.0), ("1.5 s", 1500.0), ("800us", 0.8)])
def test_times_as_people_write_them(text: str, wanted: float) -> None:
    assert parse_milliseconds(text) == pytest.approx(wanted)


@pytest.mark.parametrize("text", ["", "ms", "-1ms", "0ms", "1 hour", "1e3"])
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(OptionError, match="--latency"):
        parse_milliseconds(text)


NETWORK = """
import torch
from torch import nn

def make():
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3)).eval()
    return layers, (torch.rand(1, 3, 12, 12),)
"""


@pytest.mark.full
def test_a_pytorch_program_has_one_lateness_for_one_chip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The row of a chip, and that chip as a change of another one's row, are the same compile."""
    (tmp_path / "late_network.py").write_text(NETWORK)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = {}
    for chip in ("imxrt700", "imx95"):
        assert run(["fits", "late_network:make", "--target", chip, "--latency", "0.001ms", "--json"]) == 1
        found[chip] = json.loads(capsys.readouterr().out)["rows"]
    own = {row["schedule"]: row["short"] for row in found["imxrt700"]}
    told = {row["schedule"]: one["short"] for row in found["imx95"] for one in row["changes"]
            if one["option"] == "--target imxrt700"}  # fmt: skip
    assert told == own and all("late" in short for short in own.values())
    tried = {one["option"] for row in found["imx95"] for one in row["changes"]}
    assert {"--int8-io", "--channels-last", "--int8-io --channels-last", "--placement fastest"} <= tried


def test_a_pytorch_model_is_quantized_once_for_all_chips_and_changes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "quantized_once.py").write_text(
        "import torch\nfrom torch import nn\n"
        "def factory():\n    torch.manual_seed(0)\n    data = [(torch.rand(1, 1, 8, 8),) for _ in range(8)]\n"
        "    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU()).eval(), data[0], data\n"
    )
    quantize, made = pipeline.quantize, []
    monkeypatch.setattr(pipeline, "quantize", lambda *args, **given: made.append(args) or quantize(*args, **given))
    chips = ["--target", "mcxn94x", "--target", "imxrt700"]
    assert run(["fits", "quantized_once:factory", *chips, "--sram", "100", "--json"]) == 1
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["target"] for row in rows] == ["mcxn94x"] * 2 + ["imxrt700"] * 2
    assert len(made) == 1
    for row in rows:
        changes = {one["option"]: one["need"]["sram_bytes"] for one in row["changes"]}
        assert 0 < changes["--int8-io"] < row["need"]["sram_bytes"]
        assert changes["--target imx95"] > 0
