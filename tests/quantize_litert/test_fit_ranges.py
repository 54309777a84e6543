"""A range is cut where the outputs have less noise then, and only there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from openneutron.litert import DType, Model
from openneutron.litert.build import GraphBuilder
from openneutron.quantize_litert.fit_ranges import fit_ranges
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


def test_a_wide_range_is_cut_and_a_full_one_stays() -> None:
    samples = [(np.random.default_rng(at).uniform(-1, 1, (1, 64)).astype(np.float32),) for at in range(3)]
    assert dict(fit_ranges(sums(8.0), {"x", "y"}, samples, run_twin, power)) == {"x": 0.5, "y": 0.5}
    assert dict(fit_ranges(sums(8.0), {"x"}, samples, run_twin, power)) == {"x": 0.5}
    assert "y" not in dict(fit_ranges(sums(2.0), {"y"}, samples, run_twin, power))
