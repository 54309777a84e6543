"""Bundled programs, ETRecords and constant methods of real programs, read by ExecuTorch's own tools."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn

import openneutron
from openneutron.cli.main import run
from openneutron.errors import OptionError
from openneutron.microcode.pte_constants import read_constants
from openneutron.program import Program
from tests import tiny

IMAGE = torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(0)) * 2 - 1


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 8, 3), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.conv(x)).mean((2, 3)))


def _program(**options: object) -> Program:
    torch.manual_seed(0)
    return openneutron.compile(Net().eval(), (IMAGE,), calibration=[(IMAGE,)], **options)


@pytest.fixture(scope="module")
def int8() -> Program:
    return _program(int8_io=True)


@pytest.fixture(scope="module")
def plain() -> Program:
    return _program()


@pytest.mark.parametrize("kind", ["plain", "int8"])
def test_a_bundle_holds_the_program_its_inputs_and_the_outputs_it_gives(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    from executorch.devtools.bundled_program.serialize import deserialize_from_flatbuffer_to_bundled_program

    program: Program = request.getfixturevalue(kind)
    program.save(tmp_path / "net.bpte")
    data = (tmp_path / "net.bpte").read_bytes()
    assert data[4:8] == b"BP08"
    found = deserialize_from_flatbuffer_to_bundled_program(data)
    assert found.program == program.pte
    (case,) = found.method_test_suites[0].test_cases
    (expected,) = program.run(*program.example_inputs)
    assert case.expected_outputs[0].val.data == expected.numpy().tobytes()
    assert case.inputs[0].val.sizes == [1, 3, 8, 8]
    assert program.example_inputs[0].dtype is (torch.int8 if kind == "int8" else torch.float32)


def test_other_samples_can_be_bundled_and_a_pte_has_none(plain: Program, tmp_path: Path) -> None:
    from executorch.devtools.bundled_program.serialize import deserialize_from_flatbuffer_to_bundled_program

    plain.save(tmp_path / "net.bpte", samples=[IMAGE, (IMAGE * 0.5,)])
    found = deserialize_from_flatbuffer_to_bundled_program((tmp_path / "net.bpte").read_bytes())
    assert len(found.method_test_suites[0].test_cases) == 2
    with pytest.raises(OptionError, match=r"samples are for a \.bpte"):
        plain.save(tmp_path / "net.pte", samples=[IMAGE])
    with pytest.raises(OptionError, match=r"must end in \.tflite"):
        openneutron.compile(tiny.convnet()).save(tmp_path / "net.bpte")


def test_the_command_writes_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compile", "autoencoder", "-o", str(tmp_path / "model.bpte"), "--quality", "plain"]) == 0
    assert (tmp_path / "model.bpte").read_bytes()[4:8] == b"BP08"
    assert "model.bpte" in capsys.readouterr().out


def test_the_record_of_a_program_is_read_by_executorch(plain: Program, tmp_path: Path) -> None:
    from executorch.devtools import parse_etrecord

    plain.etrecord.save(str(tmp_path / "net.etrecord"))
    read = parse_etrecord(str(tmp_path / "net.etrecord"))
    assert read.edge_dialect_program is not None and read._delegate_map
    with pytest.raises(OptionError, match="no ETRecord"):
        _ = openneutron.compile(tiny.convnet()).etrecord


def test_scales_of_int8_ends_are_constant_methods(int8: Program, plain: Program) -> None:
    constants = read_constants(int8.pte, where="<pte>")
    assert read_constants(plain.pte, where="<pte>") == {}
    (scale,), (zero,) = constants["forward_input0_scale"], constants["forward_input0_zp"]
    floats = (int8.example_inputs[0].float() - zero) * scale
    assert (floats - IMAGE).abs().max() <= scale / 2 + 1e-6
    (out_scale,), (out_zero,) = constants["forward_output0_scale"], constants["forward_output0_zp"]
    (found,), (wanted,) = int8.run(*int8.example_inputs), plain.run(IMAGE)
    assert ((found.float() - out_zero) * out_scale - wanted).abs().max() <= 2 * out_scale


def test_inspect_shows_them(int8: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    int8.save(tmp_path / "net.pte")
    assert run(["inspect", str(tmp_path / "net.pte"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["constants"] == read_constants(int8.pte, where="<pte>")
    assert found["inputs"][0]["quantization"].startswith("scale ")
    assert run(["inspect", str(tmp_path / "net.pte")]) == 0
    text = capsys.readouterr().out
    assert "forward_input0_scale: " in text and "zero point" in text
