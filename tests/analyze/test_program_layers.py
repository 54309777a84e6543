"""A program with two delegates and a CPU operator between them, looked into delegate by delegate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import openneutron
from openneutron.analyze.program_layers import verify_pte
from openneutron.cli.main import run
from openneutron.errors import OptionError
from openneutron.executorch.run.tap import taps
from tests.executorch.ordered import ordered


class Sandwich(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.last = torch.nn.Conv2d(8, 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(ordered(torch.relu(self.first(x))))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("sandwich")
    inputs = [(torch.randn(1, 3, 8, 8),) for _ in range(4)]
    program = openneutron.compile(Sandwich(), inputs[0], calibration=inputs, dump_intermediates=True)
    assert program.report.totals.neutron_graphs == 2
    program.save(folder / "model.pte")  # and its bundle
    return folder


def test_every_layer_of_every_delegate_is_at_0_lsb(compiled: Path) -> None:
    found = verify_pte(compiled / "model.pte", compiled / "model.debug", [[torch.randn(1, 3, 8, 8)]])
    assert found.equal
    assert {layer.graph for layer in found.layers} == {0, 1} == {layer.graph for layer in found.outputs}
    assert all(layer.compared for layer in found.layers)


def test_a_delegate_gets_what_the_cpu_made_of_the_one_before(compiled: Path) -> None:
    pte = (compiled / "model.pte").read_bytes()
    first, second = (list(tap.run(torch.ones(1, 3, 8, 8))) for tap in taps(pte))
    assert first[0].dtype == second[0].dtype == torch.int8
    assert first[0].unique().numel() == 1
    assert tuple(second[0].shape) == (1, 8, 8, 8) and second[0].unique().numel() > 1


def test_the_command_finds_the_bundle_beside_the_file(compiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(compiled / "model.pte"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["equal"]
    assert run(["profile", str(compiled / "model.pte"), "--json"]) == 0
    names = {kernel["name"] for kernel in json.loads(capsys.readouterr().out)["kernels"]}
    assert not any(name.startswith("node ") for name in names)


def test_a_missing_or_foreign_bundle_says_how_to_make_one(compiled: Path, tmp_path: Path) -> None:
    inputs = [torch.zeros(1, 3, 8, 8)]
    with pytest.raises(OptionError, match=r"no debug bundle with partition_0.tflite.*--intermediates"):
        verify_pte(compiled / "model.pte", tmp_path, [inputs])
    for file in (compiled / "model.debug").glob("partition_1*"):
        (tmp_path / file.name.replace("partition_1", "partition_0")).write_bytes(file.read_bytes())
    with pytest.raises(OptionError, match="the debug bundle belongs to another compile"):
        verify_pte(compiled / "model.pte", tmp_path, [inputs])
