from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openneutron as on
from openneutron.errors import MissingExtraError, OptionError, RuntimeFailure
from openneutron.litert import DType, read_model, write_model
from openneutron.litert.build import GraphBuilder
from openneutron.quantize_litert import quantize
from openneutron.quantize_litert.quantize import quantize_float, samples_of
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
        (ROWS[:0], "calibration is empty"),
        (np.where(ROWS > 1, np.nan, ROWS), r"calibration\[0\], row \d: input 'x' has NaN"),
        ([np.full((1, 6), np.inf, np.float32)], r"calibration\[0\]: input 'x' has infinity"),
        ([np.zeros((1, 7), np.float32)], r"m, calibration\[0\]: input 'x' is float32 \[1, 7\]"),
        ([{"y": ROWS}], r"calibration\[0\]: 0 inputs given, the model has 1"),
        ({"x": ROWS}, "calibration is a dict"),
    ],
    ids=["empty", "no rows", "not a number", "infinity", "shape", "name", "mapping of all"],
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


def test_one_sample_and_huge_ones_and_masked_ones_are_enough() -> None:
    rows = ROWS.copy()
    rows[0, 0], rows[1, 1] = 3e38, -np.inf
    assert len(quantize_float(tiny.floats(), rows[2:3]).model) > 0
    assert len(quantize_float(tiny.floats(), rows).model) > 0


def test_what_litert_cannot_run_is_named() -> None:
    g = GraphBuilder()
    x, y = (g.tensor(name, (1, 6), DType.FLOAT32) for name in "xy")
    g.op("CUSTOM", [x], [y]).custom_code = "Landmarks2TransformMatrix"
    with pytest.raises(RuntimeFailure, match="LiteRT has no operator Landmarks2TransformMatrix"):
        quantize_float(write_model(g.finish([x], [y])), ROWS)


def test_a_calibration_that_does_not_end_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _worker(tmp_path, monkeypatch, "while True: pass")
    monkeypatch.setenv("OPENNEUTRON_TIMEOUT", "1")  # for each run of a sample, and one to begin with
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
