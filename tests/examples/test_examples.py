"""Every example runs as printed, in a folder of its own, and does what it says, without a word on stderr."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from examples import imxrt700cm, keyword_spotting, merged_models, own_cnn, own_tflite, wake_word
from examples import onnx as onnx_example
from openneutron.program import Program

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOK = EXAMPLES / "notebook.ipynb"
SCRIPTS = sorted(path.stem for path in EXAMPLES.glob("*.py"))
SLOW = [pytest.param(name, marks=pytest.mark.full) for name in SCRIPTS if name != "own_tflite"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    # Deprecations between libraries are not shown by Python, unless the main script is to blame.
    assert [str(one.message) for one in recwarn if not issubclass(one.category, DeprecationWarning)] == []


@pytest.mark.parametrize("name", ["own_tflite", *SLOW])
def test_a_terminal_shows_the_result_and_nothing_else(name: str, folder: Path) -> None:
    done = subprocess.run([sys.executable, EXAMPLES / f"{name}.py"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_own_cnn_names_the_line_of_what_stays_on_the_cpu(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = own_cnn.main()
    assert (folder / "own_cnn.pte").read_bytes() == program.pte
    (left,) = [node for node in program.verdicts if node.operator == "aten.topk.default"]
    line = next(n for n, text in enumerate(Path(own_cnn.__file__).read_text().splitlines(), 1) if "torch.topk" in text)
    assert not left.delegated and left.source.strip() == f"own_cnn.py:{line}"
    assert f"own_cnn.py:{line}" in capsys.readouterr().out


def test_imxrt700cm_shows_every_engine_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert imxrt700cm.main(["mixed"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Operators per engine" in text and "mixed" in text
    assert "aten.topk.default" in text and "portable" in text and "cortex_m" in text


@pytest.mark.full
def test_onnx_compiles_the_float_and_the_quantized_form(capsys: pytest.CaptureFixture[str]) -> None:
    onnx_example.main()
    text = capsys.readouterr().out
    assert "float, calibrated here" in text and "quantized by onnxruntime" in text and text.count("1 NeutronGraph") == 2


def test_own_tflite_is_bit_exact(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert own_tflite.main([]) == 0
    assert (folder / "small_neutron.tflite").is_file()
    assert "3 of 3 operators on the NPU" in capsys.readouterr().out


def test_own_tflite_takes_a_file(folder: Path) -> None:
    (folder / "mine.tflite").write_bytes(own_tflite.small_model())
    assert own_tflite.main(["mine.tflite"]) == 0
    assert (folder / "mine_neutron.tflite").is_file()


def test_keyword_spotting_hears_four_sounds(folder: Path) -> None:
    before, after = keyword_spotting.main()
    assert before > 0.7, "training did not work; chance is 0.25"
    assert abs(before - after) <= 0.1
    assert (folder / "kws.pte").is_file()


def test_merged_models_share_kernels(folder: Path) -> None:
    kernels = merged_models.main()
    assert kernels["both"] == kernels["a"] | kernels["b"]
    assert len(kernels["both"]) < len(kernels["a"]) + len(kernels["b"])
    assert "nk_conv2d" in (folder / "kernel_selection.c").read_text()


def test_notebook_cells_run() -> None:
    names: dict[str, object] = {}
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    for index, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [], "clear the outputs before committing"
            exec(compile("".join(cell["source"]), f"notebook cell {index}", "exec"), names)
    program = names["program"]
    assert isinstance(program, Program)
    assert "<table" in program._repr_html_()


def test_the_wake_word_hears_frame_by_frame_what_it_hears_at_once() -> None:
    rng = np.random.default_rng(1)
    frames, answers, ends = wake_word.recording([wake_word.WORD, wake_word.OTHERS[0]], rng)
    assert answers[ends[0]] == 1 and not answers[ends[1]] and frames.shape[1] == wake_word.BANDS
    torch.manual_seed(0)
    model = wake_word.Spotter().eval()
    with torch.no_grad():
        at_once = torch.sigmoid(model.logits(torch.tensor(frames, dtype=torch.float32).T[None]))[0]
    # Padding of zeros stands for the state of zeros that the stream begins with.
    np.testing.assert_allclose(wake_word.stream(model, frames), at_once, atol=1e-5)
    assert wake_word.picture({name: np.zeros(9) for name in "abc"}, [wake_word.WORD], [4]).count("<polyline") == 3


@pytest.mark.full
def test_the_wake_word_is_heard_in_every_precision(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = wake_word.main()
    assert all(missed + wrong <= 3 for missed, wrong in counts.values())
    assert (folder / "wake_word.svg").stat().st_size > 1000
    cycles, sizes = {}, {}
    for line in capsys.readouterr().out.splitlines():
        if found := re.match(r"(\w+) +(INT\w+) +([\d,]+) +[\d.]+ +([\d,]+) +([\d,]+) +(\d+) of (\d+)$", line):
            chip, form, count, ram, flash, on_npu, operators = found.groups()
            assert on_npu == operators
            cycles[form, chip], sizes[form, chip] = number(count), (number(ram), number(flash))
    page = (EXAMPLES.parent / "docs" / "recurrent.md").read_text("utf-8")
    rows = re.findall(r"^\| (?:cycles per frame|RAM|weights and).*? \| (.*?) \| (.*?) \|$", page, re.MULTILINE)
    for column, form in enumerate(("INT8", "INT16x8")):
        shown, ram, flash = (row[column].removesuffix(" bytes") for row in rows)
        assert [sizes[form, chip][0] for chip in ("imxrt700", "mcxn94x")] == [number(ram)] * 2
        # Training rounds otherwise on other processors, which changes how well weights compress.
        assert sizes[form, "mcxn94x"][1] == pytest.approx(number(flash), rel=0.02)
        found_cycles = [cycles[form, chip] for chip in ("imx95", "imxrt700", "mcxn94x")]
        assert found_cycles == pytest.approx([number(one) for one in shown.split(", ")], rel=0.02)


def number(text: str) -> int:
    return int(text.replace(",", ""))
