"""The command line with ONNX models: one compiled file, everything that is asked of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from openneutron.cli.main import run
from openneutron.litert.write import write_model
from tests.litert.samples import convolution
from tests.onnx.models import convnet, model, node


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "net.onnx").write_bytes(convnet(batch="n").SerializeToString())
    np.savez(tmp_path / "samples.npz", image=np.random.default_rng(0).normal(size=(8, 3, 16, 16)).astype(np.float32))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_model_is_compiled_and_inspected(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compile", "net.onnx", "--size", "n=1", "--calibration", "samples.npz", "--optimize", "fast"]
    assert run([*words, "-o", "net.tflite"]) == 0
    assert run(["inspect", "net.tflite"]) == 0
    assert run(["inspect", "net.onnx"]) == 0
    said = capsys.readouterr().out
    assert "NeutronGraph" in said and "image: float nx3x16x16" in said


def test_verify_compares_with_onnxruntime(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "net.onnx", "--calibration", "samples.npz", "--optimize", "fast"]) == 0
    said = capsys.readouterr().out
    assert "0 LSB in all" in said and "logits against onnxruntime: SQNR" in said


def test_accuracy_is_measured_on_what_the_model_was_calibrated_for(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = np.load(folder / "samples.npz")["image"] / 100
    np.savez(folder / "small.npz", image=small)
    assert run(["verify", "net.onnx", "--calibration", "small.npz", "--optimize", "fast"]) == 0
    said = capsys.readouterr().out
    assert float(said.partition("onnxruntime: SQNR ")[2].split()[0]) > 20, said


def test_run_says_what_to_do_with_an_onnx_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "net.onnx"]) == 2
    assert "openneutron compile net.onnx" in capsys.readouterr().err
    (folder / "net.tflite").write_bytes(write_model(convolution()))
    assert run(["run", "net.tflite", "--check", "net.onnx"]) == 2
    assert "`openneutron verify net.onnx` compares every layer" in capsys.readouterr().err


def test_a_network_far_from_float_is_warned_of_with_layer_and_command(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    # One scale for all channels leaves nothing of the small ones, which the second layer makes large again.
    spread = np.logspace(0, -6, 8).astype(np.float32)
    stored = {
        "w1": rng.normal(size=(16, 8)).astype(np.float32) * spread,
        "w2": rng.normal(size=(8, 4)).astype(np.float32) / spread[:, None],
    }
    nodes = [
        node("MatMul", ["x", "w1"], ["m"], "/first/MatMul"), node("Relu", ["m"], ["r"], "/relu"),
        node("MatMul", ["r", "w2"], ["y"], "/second/MatMul"),
    ]  # fmt: skip
    (folder / "spread.onnx").write_bytes(model(nodes, {"x": [1, 16]}, ["y"], stored).SerializeToString())
    np.savez(folder / "x.npz", x=rng.normal(size=(8, 16)).astype(np.float32))
    assert (
        run(
            [
                "compile",
                "spread.onnx",
                "--calibration",
                "x.npz",
                "--optimize",
                "fast",
                "--quality",
                "plain",
                "-o",
                "spread.pte",
            ]
        )
        == 0
    )
    said = " ".join("".join(capsys.readouterr()).split())
    assert "dB SQNR from float, below 20 dB" in said and "is the first layer below" in said, said
    assert "/second/MatMul" in said and "openneutron bisect" in said, said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["net.onnx", "--size", "z=3"], "nothing is called 'z'"),
        (["net.onnx", "--size", "n"], "write batch=1"),
        (["net.onnx", "--calibration", "none.npz"], "there is no such file"),
        (["gone.onnx"], "there is no such file"),
        (["cifarnet", "--size", "n=1"], "sizes are for ONNX models"),
    ],
)
def test_bad_command_lines_write_nothing(
    words: list[str], sentence: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compile", *words]) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())
    assert not list(folder.glob("*.pte"))
