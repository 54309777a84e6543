"""Ends of a range move inward where the outputs have less noise then, and outward where it makes no difference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from openneutron.litert import DType, Model
from openneutron.litert.build import GraphBuilder
from openneutron.quantize_litert.fit_ranges import Ends, FittedRanges, FittedTensor, fit_ranges
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


def ends_of(highest: float, *names: str, more_noise: float = 0.0) -> dict[str, Ends]:
    fitted = fit_ranges(sums(highest), names, SAMPLES, run_twin, power).with_headroom(more_noise)
    return {name: Ends(low, high) for name, low, high in fitted}


def test_a_wide_range_is_cut_and_a_full_one_stays() -> None:
    found = ends_of(8.0, "x", "y")
    low, high = found["x"].of((-8.0, 8.0))
    assert -4.0 < low < -1.0 and 1.0 < high < 4.0 and "y" in found
    assert "y" not in ends_of(8.0, "x")
    assert "y" not in ends_of(2.0, "y")


def test_each_end_is_cut_for_itself() -> None:
    positive = [(np.abs(one[0]),) for one in SAMPLES]
    fitted = fit_ranges(sums(2.0), {"x"}, positive, run_twin, power).with_headroom(0.0)
    (found,) = [Ends(low, high) for name, low, high in fitted if name == "x"]
    low, high = found.of((-2.0, 2.0))
    assert low > -0.5 and high > 0.9


def test_headroom_goes_to_tensors_with_little_noise_and_not_below_zero() -> None:
    quiet, loud, relu, cut = (
        FittedTensor(frozenset({name}), (low, 1.0), ends, noise)
        for name, low, ends, noise in (
            ("quiet", -1.0, Ends(), 0.001), ("loud", -1.0, Ends(), 10.0), ("relu", 0.0, Ends(), 0.001),
            ("cut", -1.0, Ends(-0.1, 0.0), 0.001),
        )
    )  # fmt: skip
    found = {name: Ends(*moved) for name, *moved in FittedRanges([quiet, loud, relu, cut]).with_headroom(0.2)}
    assert found["quiet"].of((-1.0, 1.0)) == (-2.0, 2.0)
    assert found["relu"].of((0.0, 1.0)) == (0.0, 2.0)
    assert found["loud"].high == pytest.approx(0.005, rel=0.01)
    assert found["cut"] == Ends(-0.1, 0.0)
    assert [name for name, *_ in FittedRanges([quiet, cut]).with_headroom(0.0)] == ["cut"]
