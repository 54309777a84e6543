"""Quantized tensors with the operators around them, and the noise of each alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from openneutron.litert import DType, Model
from openneutron.litert.build import GraphBuilder
from openneutron.quantize_litert.find_noise import differences, measure_noise, quantized_tensors
from openneutron.quantize_litert.float_model import run_twin


def chain() -> Model:
    """A float input, quantized, shifted, reshaped, changed to another scale and added."""
    g = GraphBuilder()
    x = g.tensor("x", (1, 4), DType.FLOAT32)
    stored = g.tensor("stored", (1, 4), DType.INT8, 0.1, 0)
    y = g.tensor("y", (1, 4), DType.INT8, 0.5, 0)
    moved = g.tensor("moved", (4, 1), DType.INT8, 0.5, 0)
    coarse = g.tensor("coarse", (4, 1), DType.INT8, 1.0, 0)
    z = g.tensor("z", (4, 1), DType.INT8, 0.25, 0)
    end = g.tensor("end", (4, 1), DType.FLOAT32)
    one = g.tensor("one", (4,), DType.INT8, 0.1, 0, data=np.full(4, 10, np.int8))
    g.op("QUANTIZE", [x], [stored])
    g.op("ADD", [stored, one], [y])
    g.op("RESHAPE", [y, g.tensor("shape", (2,), DType.INT32, data=np.int32([4, 1]))], [moved])
    g.op("QUANTIZE", [moved], [coarse])
    g.op("ADD", [coarse, coarse], [z])
    g.op("DEQUANTIZE", [z], [end])
    return g.finish([x], [end])


def test_what_only_moves_values_belongs_to_one_tensor() -> None:
    found = quantized_tensors(chain().main)
    assert [(sorted(one.makers), sorted(one.readers), one.elements) for one in found] == [
        ([], ["y"], 4),
        (["moved", "y"], ["moved", "z"], 4),
        (["moved"], ["z"], 4),
        (["z"], [], 4),
    ]


def test_each_tensor_has_the_noise_of_its_own_steps() -> None:
    model, samples = chain(), [(np.float32([[0.03, 0.14, -1.77, 2.04]]),)]

    def measure(outputs: Sequence[Any]) -> Any:
        return np.array([np.square(one.astype(np.float64)).sum() for one in outputs])

    exact = [[2 * (samples[0][0] + 1.0).reshape(4, 1)]]
    noise = measure_noise(model, quantized_tensors(model.main), samples, exact, run_twin, measure)
    (signal,) = measure(exact[0])

    def rounded(step: float) -> Any:
        y = samples[0][0] + 1
        return 2 * (np.rint(y / step) * step - y)

    for at, step in ((1, 0.5), (2, 1.0)):
        assert np.isclose(noise.alone[at][0], np.square(rounded(step)).sum() / signal, rtol=1e-4)
    assert noise.floor[0] < 1e-10


def test_what_is_not_finite_is_no_difference() -> None:
    (found,) = differences([np.float32([np.nan, 1.0, np.inf])], [np.float32([0.0, 3.0, 0.0])])
    assert found.tolist() == [0.0, -2.0, 0.0]
