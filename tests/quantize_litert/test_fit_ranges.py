"""Ends of a range move inward where the outputs have less noise then, and outward where it makes no difference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from openneutron.litert import DType, Model
from openneutron.litert.build import GraphBuilder
from openneutron.quantize_litert.fit_ranges import Ends, fit_ranges, hold, widen
from openneutron.quantize_litert.float_model import run_twin


def sums(highest: float) -> Model:
    """Values of about 1 in a range up to `highest`."""
    g = GraphBuilder()
    x, end = (g.tensor(name, (1, 64), DType.FLOAT32) for name in ("x", "end"))
    stored, y = (g.tensor(name, (1, 64), DType.INT8, highest / 127, 0) for name in ("stored", "y"))
    g.op("QUANTIZE", [x], [stored])
    g.op("ADD", [stored, stored], [y])
    g.op("DEQUANTIZE", [y], [end])
    return g.finish([x], [end])


def power(outputs: Sequence[Any]) -> Any:
    return np.array([np.square(one.astype(np.float64)).sum() for one in outputs])


SAMPLES = [(np.random.default_rng(at).uniform(-1, 1, (1, 64)).astype(np.float32),) for at in range(3)]


def ends_of(highest: float, *names: str, samples: Sequence[Any] = SAMPLES) -> dict[str, Ends]:
    fitted = fit_ranges(sums(highest), names, samples, run_twin, power)
    return {name: Ends(low, high) for name, low, high in fitted}


def test_a_wide_range_is_cut_and_a_full_one_is_not() -> None:
    found = ends_of(8.0, "x", "y")
    low, high = found["x"].of((-8.0, 8.0))
    assert -low == pytest.approx(4.0, abs=0.05) and high == pytest.approx(4.0, abs=0.05) and found["y"].low < 0
    assert ends_of(8.0, "x")["y"].low > 0
    assert ends_of(2.0, "y")["y"].low > 0


def test_each_end_is_cut_for_itself() -> None:
    low, high = ends_of(2.0, "x", samples=[(np.abs(one[0]),) for one in SAMPLES])["x"].of((-2.0, 2.0))
    assert low == pytest.approx(-1.0, abs=0.05) and low > -high


def test_headroom_goes_to_tensors_with_little_noise_and_not_below_zero() -> None:
    assert widen((-1.0, 1.0), 0.001).of((-1.0, 1.0)) == (-2.0, 2.0)
    assert widen((0.0, 1.0), 0.001).of((0.0, 1.0)) == (0.0, 2.0)
    assert widen((-3.0, 0.0), 0.001).of((-3.0, 0.0)) == (-6.0, 0.0)
    assert widen((-1.0, 1.0), 10.0).high == pytest.approx(0.005, rel=0.01)


def test_a_range_is_held_with_0_as_one_of_its_steps() -> None:
    low, high = hold((-3.1, 65.3))
    step = (high - low) / 255
    assert step == pytest.approx((65.3 + 3.1) / 255) and low / step == pytest.approx(round(low / step))
    assert hold((low, high)) == pytest.approx((low, high)) and hold((0.0, 0.0)) == (0.0, 0.0)
