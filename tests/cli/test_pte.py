"""The subcommands on an ExecuTorch program, from the zoo to its last byte."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from openneutron.cli.main import run
from openneutron.report.model import from_json
from tests.cli.conftest import Command

Refused = Callable[..., str]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The smallest model of the zoo, compiled once with everything that can be asked for."""
    folder = tmp_path_factory.mktemp("pte")
    options = [
        "--use-profiling",
        "--dump-kernel-selection",
        "--intermediates",
        str(folder / "dumps"),
        "--not-delegate",
        "*softmax*",
    ]
    assert run(["compile", "ds_cnn", "-o", str(folder / "ds_cnn.pte"), *options]) == 0
    return folder


def test_side_files_are_written(compiled: Path) -> None:
    assert "neutronKernels" in (compiled / "ds_cnn_kernel_selection.c").read_text()
    names = {path.name for path in (compiled / "dumps").iterdir()}
    assert {"partition_0.tflite", "partition_0_converted.tflite", "partition_0_report.json"} <= names
    assert sorted(path.name for path in compiled.iterdir()) == ["ds_cnn.pte", "ds_cnn_kernel_selection.c", "dumps"]


def test_a_zoo_name_is_compiled_to_its_own_pte(command: Command, folder: Path) -> None:
    outcome = command("compile", "autoencoder")
    assert (outcome.code, outcome.err) == (0, "")
    assert f"autoencoder.pte {(folder / 'autoencoder.pte').stat().st_size:,} bytes" in outcome.out
    assert "29 of 29 on the NPU" in outcome.out


def test_json_names_the_nodes_left_and_why(command: Command) -> None:
    report = from_json(command("compile", "ds_cnn", "--json", "--not-delegate", "*softmax*").out)
    (softmax,) = [node for node in report.nodes if "softmax" in node.operator]
    assert not softmax.delegated and softmax.reason
    assert report.totals.operators_converted == report.totals.operators_total > 0


def test_inspect_shows_delegate_and_operators(command: Command, compiled: Path) -> None:
    found = json.loads(command("inspect", compiled / "ds_cnn.pte", "--json").out)
    assert found["kind"] == "ExecuTorch program"
    assert found["delegates"] == {"NeutronBackend": len(found["graphs"])}
    assert any("softmax" in name for name in found["operators"])
    assert all(graph["profiling"] and graph["target"] == "imxrt700" for graph in found["graphs"])


def test_profile_names_layers_by_their_modules(command: Command, compiled: Path) -> None:
    bundle = ("--bundle", compiled / "dumps")
    kernels = json.loads(command("profile", compiled / "ds_cnn.pte", *bundle, "--json").out)["kernels"]
    assert kernels and all(kernel["module"] and kernel["macs"] >= 0 for kernel in kernels)
    assert "aten_" not in command("profile", compiled / "ds_cnn.pte", *bundle).out


def test_disasm_prints_the_microcode(command: Command, compiled: Path) -> None:
    text = command("disasm", compiled / "ds_cnn.pte").out
    assert "delegate 0" in text and "CALL  depthwise_conv2d" in text


def test_run_takes_and_gives_arrays(command: Command, compiled: Path) -> None:
    (one,) = json.loads(command("inspect", compiled / "ds_cnn.pte", "--json").out)["inputs"]
    np.save(compiled / "x.npy", np.zeros(one["shape"], one["dtype"]))
    outcome = command("run", compiled / "ds_cnn.pte", "--input", compiled / "x.npy", "--output", compiled / "y.npz")
    assert outcome.code == 0, outcome
    scores = np.load(compiled / "y.npz")["output_0"]
    assert np.isclose(scores.sum(), 1, atol=0.05)
    assert "output_0: float32" in command("run", compiled / "ds_cnn.pte").out


def test_inputs_that_do_not_fit_are_refused(refused: Refused, compiled: Path) -> None:
    np.save(compiled / "bad.npy", np.zeros((1, 2), np.float32))
    assert "input 'input_0' is float32 [1, 2]" in refused(
        "run", compiled / "ds_cnn.pte", "--input", compiled / "bad.npy"
    )


@pytest.mark.parametrize("verb", ["run", "inspect", "disasm"])
@pytest.mark.parametrize("damage", ["a changed byte", "cut off"])
def test_a_damaged_program_is_one_sentence(refused: Refused, compiled: Path, verb: str, damage: str) -> None:
    data = bytearray((compiled / "ds_cnn.pte").read_bytes())
    if damage == "cut off":
        del data[len(data) // 2 :]
    else:
        data[len(data) // 2] ^= 0x40
    (compiled / "bad.pte").write_bytes(data)
    assert "bad.pte" in refused(verb, compiled / "bad.pte")
