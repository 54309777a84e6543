from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from openneutron.litert import read_model
from openneutron.report.model import from_json
from tests import tiny
from tests.cli.conftest import Command

Refused = Callable[..., str]


def test_a_litert_file_is_compiled_and_summed_up(command: Command, folder: Path) -> None:
    outcome = command("compile", "convnet.tflite", "-o", "out.tflite")
    assert (outcome.code, outcome.err) == (0, "")
    size = (folder / "out.tflite").stat().st_size
    for wanted in ("5 of 5 LiteRT operators in 1 NeutronGraph", f"out.tflite {size:,} bytes", "conv2d", "bound by"):
        assert wanted in outcome.out


def test_compiling_a_litert_file_imports_nothing_heavy(folder: Path) -> None:
    script = (
        "import sys; from openneutron.cli.main import run; code = run(['compile', 'convnet.tflite']);"
        "heavy = {'rich', 'pydantic', 'torch', 'ortools', 'jinja2', 'ai_edge_litert', 'zipfile', 'asyncio'};"
        "sys.exit(code or ' '.join(sorted(heavy & set(sys.modules))) or None)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "convnet_neutron.tflite" in done.stdout


def test_without_a_name_the_output_is_named_after_the_source(command: Command, folder: Path) -> None:
    assert command("compile", "convnet.tflite").code == 0
    assert (folder / "convnet_neutron.tflite").is_file()


def test_json_is_the_whole_report_and_nothing_else(command: Command, folder: Path) -> None:
    outcome = command("compile", "convnet.tflite", "--json", "-o", "out.tflite")
    report = from_json(outcome.out)
    assert (report.target, report.source) == ("imxrt700", "convnet.tflite")
    assert (report.totals.operators_total, report.totals.operators_converted) == (5, 5)
    assert report.totals.cycles > 0
    assert report.files == {"out.tflite": (folder / "out.tflite").stat().st_size}


def test_json_alone_writes_no_file(command: Command, folder: Path) -> None:
    before = sorted(folder.iterdir())
    assert json.loads(command("compile", "convnet.tflite", "--json").out)["files"] == {}
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("verb", ["compile", "fits", "report"])
def test_a_compiled_model_is_not_compiled_again(verb: str, command: Command, refused: Refused, folder: Path) -> None:
    assert command("compile", "convnet.tflite", "-o", "out.tflite").code == 0
    assert "out.tflite: it was compiled for Neutron already. Hint: give the .tflite" in refused(verb, "out.tflite")


def test_what_has_no_kernel_stays_with_its_reason(command: Command, folder: Path) -> None:
    outcome = command("compile", "sandwich.tflite")
    assert outcome.code == 0
    assert "Left on the CPU" in outcome.out
    assert "operator SIN has no kernel" in outcome.out


def test_a_float_model_is_left_whole_and_says_how_to_quantize(command: Command, folder: Path) -> None:
    report = from_json(command("compile", "floats.tflite", "--json").out)
    assert report.totals.operators_converted == 0
    assert all("float32" in op.reason and "quantize the model to INT8" in op.hint for op in report.operators)


def test_every_target_compiles(command: Command, folder: Path) -> None:
    time = {
        target: from_json(command("compile", "convnet.tflite", "--json", "--target", target).out).totals.milliseconds
        for target in ("imx95", "imxrt700", "mcxn94x")
    }
    assert time["imx95"] < time["imxrt700"] < time["mcxn94x"]


def test_side_files_are_written_where_asked(command: Command, folder: Path) -> None:
    assert (
        command(
            "compile", "convnet.tflite", "-o", "a.tflite", "--dump-kernel-selection", "--intermediates", "dumps"
        ).code
        == 0
    )
    assert "neutronKernels" in (folder / "a_kernel_selection.c").read_text()
    assert {"graph0.l1.txt", "graph0.l2.txt", "graph0.microcode.txt"} <= {p.name for p in (folder / "dumps").iterdir()}


def test_a_report_comes_with_the_compile(command: Command, refused: Refused, folder: Path) -> None:
    outcome = command("compile", "convnet.tflite", "-o", "a.tflite", "--report", "a.html")
    assert outcome.code == 0 and "a.html" in outcome.out and "a.tflite" in outcome.out
    page = (folder / "a.html").read_text()
    assert "convnet.tflite" in page and "--target mcxn94x" in page and 'data-key="lsb"' in page
    report = from_json(command("compile", "convnet.tflite", "--json", "--report", "b.html").out)
    assert {kernel.lsb for kernel in report.kernels} == {0.0} and report.what_ifs
    assert "must end in .html" in refused("compile", "convnet.tflite", "--report", "a.pdf")


def test_what_must_fit_decides_the_exit_code(command: Command, folder: Path) -> None:
    fits = command("compile", "convnet.tflite", "--must-fit")
    assert fits.code == 0 and "does not fit" not in fits.out
    small = command("compile", "convnet.tflite", "--must-fit", "--flash", "1K", "--target", "mcxn94x")
    assert small.code == 1 and "it does not fit the flash of mcxn94x" in small.out and "1,024 there" in small.out
    assert (folder / "convnet_neutron.tflite").is_file()  # it is made all the same, to be looked at
    asked = command("compile", "convnet.tflite", "--flash", "1K", "--target", "mcxn94x")
    assert asked.code == 0 and "it does not fit the flash" in asked.out
    assert json.loads(command("compile", "convnet.tflite", "--flash", "1K", "--json").out)["flash_bytes"] == 1024


def test_operators_can_be_kept_on_the_cpu_by_name(command: Command, folder: Path) -> None:
    report = from_json(command("compile", "convnet.tflite", "--json", "--not-delegate", "SOFTMAX").out)
    assert [op.code for op in report.operators if not op.converted] == ["SOFTMAX"]


def test_a_budget_that_holds_changes_nothing_and_one_that_cannot_is_refused(
    command: Command, refused: Refused, folder: Path
) -> None:
    assert command("compile", "convnet.tflite", "--json", "--fit", "64K").code == 0
    assert "raise --fit" in refused("compile", "convnet.tflite", "-o", "small.tflite", "--fit", "200")
    assert not (folder / "small.tflite").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.tflite"], "nothing.tflite: there is no such file"),
        (["no/model.pt"], "no/model.pt: there is no such file"),
        (["cifarnot"], "the zoo has no model 'cifarnot'.*did you mean 'cifarnet'"),
        (["convnet.tflite", "--target", "imxrt800"], "unknown target 'imxrt800'.*imx95, imxrt2660, imxrt700, mcxn94x"),
        (["convnet.tflite", "--target", "imx952"], "target 'imx952' has no public figures"),
        (["convnet.tflite", "--converter", "gcc"], "converter is 'gcc'.*open, nxp"),
        (["convnet.tflite", "--converter", "nxp"], "eiq_neutron_sdk"),
        (["convnet.tflite", "--optimize", "O3"], "optimize is 'O3'.*fast, default, max"),
        (["convnet.tflite", "--fit", "lots"], "--fit is 'lots'"),
        (["convnet.tflite", "--pass-off", "fuse_everything"], "fuse_everything"),
        (["convnet.tflite", "--channels-last"], r"\(--channels-last\) is for PyTorch models"),
        (["convnet.tflite", "-o", "."], "this is a folder"),
        (["convnet.tflite", "-o", "no/such/out.tflite"], "folder 'no/such' does not exist"),
        (["convnet.tflite", "-o", "out.pte"], "must end in .tflite"),
        (["."], "this is a folder"),
        (["noise.tflite"], "noise.tflite"),
        (["half.tflite"], "half.tflite"),
        (["empty.tflite"], "empty.tflite"),
        (["program.pte"], "this is a compiled ExecuTorch program already"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_sentence_and_leaves_nothing_behind(
    refused: Refused, folder: Path, arguments: list[str], message: str
) -> None:
    import re

    (folder / "noise.tflite").write_bytes(bytes(range(256)))
    (folder / "half.tflite").write_bytes(tiny.convnet()[:1500])
    (folder / "empty.tflite").write_bytes(b"")
    (folder / "program.pte").write_bytes(b"\x1c\0\0\0ET12")
    before = sorted(folder.iterdir())
    line = refused("compile", *arguments)
    assert re.search(message, line), line
    assert sorted(folder.iterdir()) == before


def test_the_model_is_never_written_over(refused: Refused, folder: Path) -> None:
    before = tiny.convnet()
    for more in ([], ["--force"]):
        assert "inputs are never written over" in refused("compile", "convnet.tflite", "-o", "convnet.tflite", *more)
    assert (folder / "convnet.tflite").read_bytes() == before


def test_a_file_of_somebody_elses_needs_force(command: Command, refused: Refused, folder: Path) -> None:
    assert "--force" in refused("compile", "convnet.tflite", "-o", "sandwich.tflite")
    assert command("compile", "convnet.tflite", "-o", "sandwich.tflite", "--force").code == 0
    assert command("compile", "convnet.tflite", "-o", "sandwich.tflite").code == 0  # ours by now


def test_a_target_may_be_spelled_as_on_the_chip(command: Command, folder: Path) -> None:
    report = from_json(command("compile", "convnet.tflite", "--json", "--target", "MCXN947").out)
    assert report.target == "mcxn94x"


def test_a_float_model_is_quantized_with_its_data(command: Command, folder: Path) -> None:
    np.savez("rows.npz", x=np.linspace(-2, 2, 48, dtype=np.float32).reshape(8, 6))
    outcome = command("compile", "floats.tflite", "--calibration", "rows.npz", "-o", "out.tflite", "--json",
                      "--activations", "int16", "--intermediates", "parts")  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["totals"]["operators_converted"] == 2
    dtypes = {tensor.dtype.value for tensor in read_model(Path("parts/quantized.tflite").read_bytes()).main.tensors}
    assert "int16" in dtypes
