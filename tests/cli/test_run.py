from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Command

Refused = Callable[..., str]


@pytest.fixture
def compiled(command: Command, folder: Path) -> Path:
    for name in ("convnet", "sandwich"):
        assert command("compile", f"{name}.tflite", "-o", f"{name}_out.tflite").code == 0
    return folder


@pytest.mark.parametrize("name", ["convnet", "sandwich"])
def test_a_compiled_file_equals_its_source_bit_for_bit(command: Command, compiled: Path, name: str) -> None:
    for seed in range(3):
        outcome = command("run", f"{name}_out.tflite", "--check", f"{name}.tflite", "--seed", seed)
        assert outcome.code == 0, outcome
        assert "0 LSB from" in outcome.out


def test_a_difference_is_exit_code_one_and_counted(command: Command, compiled: Path) -> None:
    from openneutron.litert import read_model, write_model

    model = read_model((compiled / "convnet.tflite").read_bytes())
    dense = next(tensor for tensor in model.main.tensors if tensor.name == "offset")
    dense.data = np.array([-90000, 0, 0, 0, 0], np.int32)
    (compiled / "other.tflite").write_bytes(write_model(model))
    outcome = command("run", "convnet_out.tflite", "--check", "other.tflite", "--json")
    assert outcome.code == 1
    (check,) = json.loads(outcome.out)["check"]
    assert check["differing"] > 0 and check["largest"] >= 1


def test_inputs_by_position_and_by_name_and_outputs_to_a_file(command: Command, compiled: Path) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-128, 128, (1, 4, 4, 2), np.int8) for _ in range(2))
    np.savez(compiled / "position.npz", a, b)
    np.savez(compiled / "name.npz", b=b, a=a)
    results = []
    for inputs in ("position", "name"):
        assert (
            command("run", "sandwich_out.tflite", "--input", f"{inputs}.npz", "--output", f"{inputs}_y.npz").code == 0
        )
        results.append(np.load(compiled / f"{inputs}_y.npz"))
    assert sorted(results[0].files) == ["out", "wave"]
    assert all(np.array_equal(results[0][name], results[1][name]) for name in ("out", "wave"))


def test_one_input_may_be_npy_and_one_output_too(command: Command, compiled: Path) -> None:
    np.save(compiled / "x.npy", np.zeros((1, 8, 8, 3), np.int8))
    assert command("run", "convnet_out.tflite", "--input", "x.npy", "--output", "y.npy").code == 0
    assert np.load(compiled / "y.npy").shape == (1, 5)


def test_the_cycles_are_those_of_the_report(command: Command, compiled: Path) -> None:
    predicted = json.loads(command("compile", "convnet.tflite", "--json").out)["totals"]["cycles"]
    assert json.loads(command("run", "convnet_out.tflite", "--json").out)["cycles"] == predicted


def test_an_unconverted_model_runs_in_the_reference_kernels(command: Command, compiled: Path) -> None:
    outcome = command("run", "floats.tflite", "--check", "floats.tflite")
    assert outcome.code == 0
    assert "simulated cycles" not in outcome.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.pte"], "there is no such file"),
        (["text.pte"], "only .pte and .tflite files run"),
        (["broken.pte"], "broken.pte"),
        (["sandwich_out.tflite", "--input", "x.npy"], "1 input given, the model has 2"),
        (["convnet_out.tflite", "--input", "float.npy"], r"input 'image' is float32 \[1, 8, 8, 3\].*must be int8"),
        (["sandwich_out.tflite", "--input", "c.npz"], "the inputs given are c.*2: a, b"),
        (["convnet_out.tflite", "--input", "text.pte"], "no .npy or .npz file"),
        (["convnet_out.tflite", "--input", "cut.npz"], "cut.npz"),
        (["convnet_out.tflite", "--output", "y.txt"], "must end in .npz or .npy"),
        (["sandwich_out.tflite", "--output", "y.npy"], "2 outputs do not fit a .npy file"),
        (["convnet_out.tflite", "--check", "convnet_out.tflite"], "this model is compiled itself"),
        (["convnet_out.tflite", "--check", "floats.tflite"], "it must be float32"),
        (["convnet_out.tflite", "--target", "mcxn94x"], "operator 0: it was compiled for imxrt700, not for mcxn94x"),
        (["convnet_out.tflite", "--target", "mcx"], "unknown target 'mcx'"),
        (["convnet_out.tflite", "--seed", "-1"], "--seed"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_sentence(refused: Refused, compiled: Path, arguments: list[str], message: str) -> None:
    import re

    (compiled / "text.pte").write_text("this is no program at all")
    (compiled / "broken.pte").write_bytes(b"\x1c\0\0\0ET12" + bytes(200))
    np.save(compiled / "x.npy", np.zeros((1, 4, 4, 2), np.int8))
    np.save(compiled / "float.npy", np.zeros((1, 8, 8, 3), np.float32))
    np.savez(compiled / "c.npz", c=np.zeros(3))
    (compiled / "cut.npz").write_bytes((compiled / "c.npz").read_bytes()[:60])
    line = refused("run", *arguments)
    assert re.search(message, line), line
