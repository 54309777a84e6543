from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openneutron as on
from openneutron.errors import MissingExtraError, OptionError, RuntimeFailure
from openneutron.litert import read_model
from openneutron.run import quantize
from openneutron.run.quantize import quantize_float, samples_of
from openneutron.run.runner import LiteRtRunner
from tests import tiny

ROWS = np.random.default_rng(3).standard_normal((8, 6)).astype(np.float32)


def test_a_float_model_becomes_one_for_the_npu() -> None:
    program = on.compile(tiny.floats(), calibration=ROWS)
    assert program.report.totals.operators_converted == program.report.totals.operators_total == 2
    assert program.report.output_sqnr is not None and program.report.output_sqnr > 20
    assert any("ai-edge-quantizer" in note for note in program.report.notes)
    middle = program.intermediates["quantized.tflite"]
    assert isinstance(middle, bytes)
    given = [np.arange(6, dtype=np.int8).reshape(1, 6)]
    (wanted,) = LiteRtRunner(middle).run(given).outputs.values()
    assert np.array_equal(program.run(*given)[0], wanted)


def test_an_output_far_from_float_is_a_warning() -> None:
    rows = ROWS.copy()
    rows[7, 0] = 3000  # the step of the input is then 12, and what the others hold becomes nothing
    program = on.compile(tiny.floats(), calibration=rows)
    assert program.report.output_sqnr is not None and program.report.output_sqnr < 20
    (warning,) = program.report.warnings
    assert warning.startswith("output 0 is ") and "below 20 dB" in warning and "--activations int16" in warning


SAMPLES = {
    "an array of all": ROWS,
    "arrays": [row[None] for row in ROWS],
    "without their batch dimension": list(ROWS),
    "with labels": [(ROWS[:4], 1), (ROWS[4:], 2)],
    "by name": [{"x": ROWS, "label": 3}],
    "in 64 bits": [ROWS.astype(np.float64)],
}


@pytest.mark.parametrize("given", SAMPLES.values(), ids=SAMPLES)
def test_samples_as_people_have_them(given: Any) -> None:
    model = read_model(tiny.floats()).main
    found = samples_of(given, [model.tensors[at] for at in model.inputs], source="m")
    assert np.array_equal(np.concatenate([one for (one,) in found]), ROWS)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "calibration is empty"),
        ([np.zeros((1, 7), np.float32)], r"m, calibration\[0\]: input 'x' is float32 \[1, 7\]"),
        ([{"y": ROWS}], r"calibration\[0\]: 0 inputs given, the model has 1"),
        ({"x": ROWS}, "calibration is a dict"),
    ],
    ids=["empty", "shape", "name", "mapping of all"],
)
def test_samples_that_do_not_fit_are_refused(given: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        quantize_float(tiny.floats(), given, source="m")


NOT_THERE = "ModuleNotFoundError: No module named 'ai_edge_quantizer'"


def _worker(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    (folder / "dying.py").write_text(body)
    monkeypatch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setattr(quantize, "_WORKER", "dying")


def test_a_crash_of_litert_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _worker(tmp_path, monkeypatch, f"import os; os.kill(os.getpid(), {int(signal.SIGABRT)})")
    with pytest.raises(RuntimeFailure, match=r"LiteRT crashed while it calibrated the model \(signal 6\)"):
        quantize_float(tiny.floats(), ROWS)


def test_a_calibration_that_does_not_end_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _worker(tmp_path, monkeypatch, "while True: pass")
    monkeypatch.setenv("OPENNEUTRON_TIMEOUT", "1")
    with pytest.raises(RuntimeFailure, match="calibrating took more than 2 seconds"):
        quantize_float(tiny.floats(), [np.zeros((1, 6), np.float32)])


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        ("import ai_edge_quantizer_of_nobody", RuntimeFailure, "quantizer failed: ModuleNotFoundError"),
        (
            "raise SystemExit(\"ModuleNotFoundError: No module named 'ai_edge_quantizer'\")",
            MissingExtraError,
            r"openneutron\[quantize\]",
        ),
        ("raise ValueError('odd')", RuntimeFailure, "LiteRT's quantizer failed: ValueError: odd"),
    ],
    ids=["another package", "not installed", "its own error"],
)
def test_a_failing_quantizer_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, error: type[Exception], message: str
) -> None:
    _worker(tmp_path, monkeypatch, body)
    with pytest.raises(error, match=message):
        quantize_float(tiny.floats(), ROWS)
