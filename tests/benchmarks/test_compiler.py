from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from benchmarks import compiler
from benchmarks.compiler import Model, bound, smallest_fit, totals
from benchmarks.networks import cifarnet, ds_cnn


def _model(data: bytes) -> Model:
    return Model("m", Path("m.tflite"), data)


def test_the_smallest_fit_is_no_larger_and_no_faster() -> None:
    model = _model(ds_cnn())
    default = totals(model)
    least = smallest_fit(model, default)
    assert least.io_bytes < least.peak_bytes <= default.peak_bytes and least.cycles >= bound(model)


def test_the_table_is_printed_without_vela(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "cifarnet.tflite"
    path.write_bytes(cifarnet())
    compiler.measure_quality([Model("cifarnet", path, path.read_bytes())], "")
    text = capsys.readouterr().out
    assert "Peak memory in KiB" in text and "of NXP's 40,960" in text and "lower bound" in text


def test_growth_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    compiler.grow(30)
    assert not tracemalloc.is_tracing()  # it would slow down all that follows
    seconds, kib = map(float, capsys.readouterr().out.split())
    assert 0 < seconds < 60 and kib > 100
