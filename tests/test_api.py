from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import openneutron as on
from openneutron.cli.main import run
from openneutron.errors import FormatError, OpenNeutronError, OptionError, RuntimeFailure, UnsupportedError
from openneutron.report.model import from_json, to_json
from tests import tiny
from tests.executorch.ordered import ordered
from tests.streaming import running_sum

IMAGE = torch.zeros(1, 3, 8, 8)


class Net(torch.nn.Module):
    """One operator for the NPU, one for the CPU."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ordered(torch.relu(self.conv(x)))


def batches(count: int = 4) -> list[tuple[torch.Tensor, ...]]:
    generator = torch.Generator().manual_seed(2)
    return [(torch.rand(1, 3, 8, 8, generator=generator),) for _ in range(count)]


@pytest.fixture(scope="module")
def program() -> on.Program:
    return on.compile(Net(), (IMAGE,), calibration=batches(), name="net")


def test_verdicts_say_who_runs_each_node_and_why(program: on.Program) -> None:
    by_operator = {verdict.operator: verdict for verdict in program.verdicts}
    conv = next(verdict for name, verdict in by_operator.items() if "conv" in name)
    left = next(verdict for name, verdict in by_operator.items() if "topk" in name)
    assert conv.delegated and not conv.reason
    assert not left.delegated and left.reason


def test_a_program_runs_and_takes_any_number_of_runs(program: on.Program) -> None:
    model = Net()
    for (image,) in batches():
        (y,) = program.run(image)
        assert torch.allclose(y, model(image), atol=0.03)


def test_the_report_is_complete_and_goes_through_json(program: on.Program) -> None:
    totals = program.report.totals
    assert (totals.macs, totals.neutron_graphs) == (8 * 8 * 8 * 27, 1)
    assert totals.cycles > 0 and totals.peak_bytes >= totals.io_bytes + totals.scratch_bytes
    assert set(program.report.seconds) >= {"exporting", "calibrating", "compiler"}
    assert from_json(to_json(program.report)) == program.report


def test_the_representations_carry_the_figures(program: on.Program) -> None:
    assert f"{program.report.totals.cycles:,} cycles" in repr(program)
    assert "Left on the CPU" in program._repr_html_()


def test_a_program_is_saved_whole_under_the_right_name(program: on.Program, tmp_path: Path) -> None:
    program.save(tmp_path / "net.pte")
    assert (tmp_path / "net.pte").read_bytes() == program.pte
    with pytest.raises(OptionError, match=r"must end in \.pte"):
        program.save(tmp_path / "net.tflite")
    with pytest.raises(OptionError, match=r"this program is a \.pte file.*program\.pte"):
        program.tflite  # noqa: B018
    assert [path.name for path in tmp_path.iterdir()] == ["net.pte"]


@pytest.mark.parametrize(
    "inputs",
    [(), (IMAGE, IMAGE), (torch.zeros(1, 3, 9, 9),), (torch.zeros(1, 3, 8, 8, dtype=torch.int32),)],
    ids=["none", "too many", "shape", "type"],
)
def test_wrong_inputs_are_refused_with_a_sentence(program: on.Program, inputs: tuple[torch.Tensor, ...]) -> None:
    with pytest.raises((OptionError, RuntimeFailure)) as caught:
        program.run(*inputs)
    assert len(str(caught.value)) > 20


def test_larger_calibration_batches_are_split(program: on.Program) -> None:
    whole = torch.cat([batch[0] for batch in batches()])
    assert on.compile(Net(), (IMAGE,), calibration=[whole], name="net").pte == program.pte


def test_inputs_run_as_arrays_and_by_name(program: on.Program) -> None:
    (wanted,) = program.run(IMAGE)
    image = IMAGE.numpy()
    assert program.input_names == ("x",)
    for given in (program.run(image.astype(np.float64)), program.run({"x": image}), program.run(x=IMAGE)):
        assert torch.equal(given[0], wanted)
    with pytest.raises(OptionError, match=r"1 inputs by position and x by name.*by name: x"):
        program.run(IMAGE, x=IMAGE)
    assert "the model was in training mode" in " ".join(program.report.notes)


def test_a_litert_program_takes_tensors_and_names() -> None:
    program = on.compile(tiny.convnet())
    image = torch.zeros(1, 8, 8, 3, dtype=torch.int8)
    assert np.array_equal(program.run(image)[0], program.run({"image": image.numpy()})[0])


def test_a_stream_begins_anew_after_a_reset() -> None:
    program = on.compile(running_sum())
    frame = np.full((1, 4), 10, np.int8)
    assert [program.run(frame)[0][0, 0] for _ in range(3)] == [5, 10, 15]
    program.reset()
    assert program.run(frame)[0][0, 0] == 5


def test_stages_are_announced_in_order() -> None:
    stages: list[str] = []
    on.compile(Net(), (IMAGE,), calibration=batches(1), progress=stages.append)
    assert stages.index("exporting") < stages.index("calibrating") < stages.index("writing the program")


def test_a_litert_file_by_path_and_by_bytes_gives_the_same(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(tiny.convnet())
    by_path, by_bytes = (
        on.compile(tmp_path / "m.tflite", target="mcxn94x"),
        on.compile(tiny.convnet(), target="mcxn94x"),
    )
    assert by_path.tflite == by_bytes.tflite
    assert by_path.report.source == "m.tflite"


def test_a_litert_program_runs_with_its_leftovers_in_the_reference_kernels() -> None:
    program = on.compile(tiny.sandwich())
    a, b = (np.full((1, 4, 4, 2), value, np.int8) for value in (10, -4))
    assert [value.dtype.name for value in program.run(a, b)] == ["int8", "float32"]
    assert [verdict.operator for verdict in program.verdicts if not verdict.delegated] == [
        "DEQUANTIZE",
        "SIN",
        "QUANTIZE",
    ]


def bad(**changes: Any) -> Callable[[], object]:
    arguments = {"source": Net(), "example_inputs": (IMAGE,), "calibration": batches(1), **changes}
    source = arguments.pop("source")
    return lambda: on.compile(source, **arguments)


class Dynamic(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[x > 0]


class Sums(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ordered(x)


def exported(*, dynamic: bool = False) -> torch.export.ExportedProgram:
    shapes = {"x": {0: torch.export.Dim("batch", min=2, max=8)}} if dynamic else None
    example = torch.zeros(4 if dynamic else 1, 3, 8, 8)
    return torch.export.export(Net().eval(), (example,), dynamic_shapes=shapes)


CASES: dict[str, tuple[Callable[[], object], type[OpenNeutronError], str]] = {
    "target": (bad(target="imxrt800"), OptionError, "unknown target 'imxrt800'.*imxrt700"),
    "target of another type": (bad(target=700), OptionError, "target is 700"),
    "converter": (bad(converter="gcc"), OptionError, "converter is 'gcc'.*open, nxp"),
    "level": (bad(optimize="O3"), OptionError, "optimize is 'O3'"),
    "budget": (bad(fit_bytes=0), OptionError, "fit_bytes is 0"),
    "names": (bad(operators_not_to_delegate=[3]), OptionError, "operators_not_to_delegate contains 3"),
    "source": (bad(source=3.5), OptionError, "the model is a float.*nn.Module"),
    "no calibration": (bad(calibration=None), OptionError, r"calibration is missing.*calibration=\["),
    "empty calibration": (bad(calibration=[]), OptionError, "calibration is empty"),
    "calibration is a number": (bad(calibration=3), OptionError, "calibration is a int.*list of input tuples"),
    "calibration shape": (bad(calibration=[(IMAGE[:, :2],)]), OptionError, r"calibration\[0\] is .*\[1, 2, 8, 8\]"),
    "calibration lacks an input": (bad(calibration=[{"label": IMAGE}]), OptionError, r"calibration\[0\] has label, and no x"),
    "no inputs": (bad(example_inputs=None), OptionError, "example_inputs is missing"),
    "inputs by unknown names": (bad(example_inputs={"y": IMAGE}), OptionError, "example_inputs has y.*the model takes x"),
    "inputs are numbers": (bad(example_inputs=(3,)), OptionError, r"example_inputs\[0\] is a int"),
    "inputs do not fit the model": (bad(example_inputs=(torch.zeros(1, 5, 8, 8),), calibration=[(torch.zeros(1, 5, 8, 8),)]),
                                    UnsupportedError, "torch.export cannot capture the model"),
    "a size that depends on data": (bad(source=Dynamic()), UnsupportedError, "it depends on data"),
    "nothing to quantize": (bad(source=Sums()), UnsupportedError, "no operator of the model can be quantized"),
    "unquantized program": (lambda: on.compile(exported()), UnsupportedError, "the program is not quantized"),
    "dynamic shapes": (lambda: on.compile(exported(dynamic=True)), UnsupportedError, "dynamic shape"),
    "missing file": (lambda: on.compile("nothing.tflite"), OptionError, "nothing.tflite: there is no such file"),
    "corrupt file": (lambda: on.compile(b"\x1c\0\0\0TFL3" + bytes(64)), FormatError, "<bytes>"),
    "no model at all": (lambda: on.compile(b"hello"), FormatError, "<bytes>"),
    "a program again": (lambda: on.compile(b"\x1c\0\0\0ET12"), OptionError, "a compiled ExecuTorch program already"),
    "calibration for INT8 LiteRT": (lambda: on.compile(tiny.convnet(), calibration=[]), OptionError, "quantized already"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_a_sentence(case: str) -> None:
    call, kind, message = CASES[case]
    with pytest.raises(kind, match=message):
        call()


NETWORK = """
import torch
from torch import nn

def make():
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.Flatten(), nn.Linear(2304, 10)]
    images = [(torch.randn(1, 3, 16, 16),) for _ in range(4)]
    return nn.Sequential(*layers).eval(), images[0], images
"""


def test_other_processes_hash_seeds_and_thread_counts_give_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other_process.py").write_text(NETWORK)
    monkeypatch.chdir(tmp_path)
    assert run(["compile", "other_process:make", "-o", "here.pte"]) == 0
    environment = {**os.environ, "PYTHONHASHSEED": "2", "OMP_NUM_THREADS": "2"}
    command = [sys.executable, "-m", "openneutron", "compile", "other_process:make", "-o", "there.pte"]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    assert Path("here.pte").read_bytes() == Path("there.pte").read_bytes()
