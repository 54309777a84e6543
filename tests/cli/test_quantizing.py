"""Float LiteRT files: every verb that takes `--calibration` quantizes them, and speaks of what that made."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openneutron.litert import DType, GraphBuilder, write_model
from openneutron.quantize_litert import quantize
from openneutron.quantize_litert.quantize import QuantizedModel
from openneutron.report.model import OutputAccuracy
from tests.cli.conftest import Command


def _int8() -> bytes:
    g = GraphBuilder()
    x, y, z = (g.tensor(name, (1, 6), DType.INT8, scale=0.1, zero_point=0) for name in "xyz")
    g.op("ADD", [x, x], [y])
    g.op("RELU", [y], [z])
    return write_model(g.finish([x], [z]))


@pytest.fixture
def quantizer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """LiteRT's quantizer takes seconds and has its own tests; here it is enough that it is asked."""
    asked: list[str] = []

    class Made:
        """Stands for the process that quantizes."""

        def __init__(self, data: bytes, samples: Iterable[Any], *, source: str = "") -> None:
            asked.append(source)
            self.count = len(list(samples))
            assert self.count > 0

        def __enter__(self) -> Made:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def quantize(self, activations: str = "int8") -> QuantizedModel:
            return QuantizedModel(_int8(), (OutputAccuracy("output 0", 33.3),), "a quantizer")

    monkeypatch.setattr(quantize, "FloatQuantizer", Made)
    rng = np.random.default_rng(3)
    np.savez(folder / "samples.npz", x=rng.standard_normal((8, 6)).astype(np.float32))
    np.savez(folder / "labelled.npz", x=rng.standard_normal((8, 6)).astype(np.float32), y=np.zeros(8, np.int64))
    return asked


GIVEN = ("floats.tflite", "--calibration", "samples.npz")


def test_fits(command: Command, quantizer: list[str]) -> None:
    outcome = command("fits", *GIVEN, "--json")
    assert outcome.code == 0 and all(row["need"]["on_npu"] for row in json.loads(outcome.out)["rows"])
    assert quantizer == ["floats.tflite"]


def test_report(command: Command, quantizer: list[str]) -> None:
    report = json.loads(command("report", *GIVEN, "--json").out)
    assert report["totals"]["operators_converted"] == 2 and report["output_sqnr"] == 33.3
    assert all(kernel["lsb"] == 0 for kernel in report["kernels"])
    assert quantizer


def test_verify(command: Command, quantizer: list[str]) -> None:
    assert "0 LSB in all" in command("verify", *GIVEN).out
    assert quantizer


def test_evaluate_compares_with_float(command: Command, quantizer: list[str]) -> None:
    out = command("evaluate", *GIVEN, "--data", "labelled.npz", "--json").out
    assert [one["form"] for one in json.loads(out)] == ["float", "reference", "compiled"]


def test_sweep(command: Command, quantizer: list[str]) -> None:
    (row,) = json.loads(command("sweep", *GIVEN, "-o", "swept", "--json").out)
    assert row["sqnr_db"] == 33.3 and row["open_ms"] > 0


def test_compare_with_a_quantized_one(command: Command, quantizer: list[str], folder: Path) -> None:
    (folder / "int8.tflite").write_bytes(_int8())
    left, right = json.loads(command("compare", GIVEN[0], "int8.tflite", *GIVEN[1:], "--json").out)
    assert left["cycles"] == right["cycles"] and quantizer == ["floats.tflite"]
