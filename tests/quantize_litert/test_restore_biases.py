"""A channel with tiny weights keeps its bias, which LiteRT's quantizer wraps around with 16-bit activations."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.litert import DType, write_model
from openneutron.litert.build import GraphBuilder
from openneutron.quantize_litert.quantize import quantize_float
from openneutron.quantize_litert.restore_biases import restore_biases

RANDOM = np.random.default_rng(0)
ROWS = RANDOM.standard_normal((8, 8)).astype(np.float32)


def layer() -> bytes:
    g = GraphBuilder()
    x, y = g.tensor("x", (1, 8), DType.FLOAT32), g.tensor("y", (1, 4), DType.FLOAT32)
    weights = RANDOM.standard_normal((4, 8)).astype(np.float32)
    weights[2] *= 1e-7
    w = g.tensor("w", (4, 8), DType.FLOAT32, data=weights)
    b = g.tensor("b", (4,), DType.FLOAT32, data=np.float32([0.5, -0.25, 3.0, 1.0]))
    g.op("FULLY_CONNECTED", [x, w, b], [y])
    return write_model(g.finish([x], [y]))


@pytest.mark.parametrize("activations", ["int8", "int16"])
def test_the_result_has_the_bias(activations: str) -> None:
    made = quantize_float(layer(), ROWS, activations=activations)
    assert made.outputs[0].sqnr is not None and made.outputs[0].sqnr > 30


def test_only_channels_that_need_it_change() -> None:
    def made(*, quantized: bool) -> tuple[GraphBuilder, list[int]]:
        g = GraphBuilder()
        x, y = ((1, 2), (1, 3))
        scales = np.array([0.5, 1e-12, 0.5])
        if quantized:
            ends = [g.tensor("x", x, DType.INT8, 0.1, 0), g.tensor("y", y, DType.INT8, 0.1, 0)]
            w = g.tensor("w", (3, 2), DType.INT8, scales, 0, data=np.int8([[2, 4], [1, -1], [6, 8]]))
            b = g.tensor("b", (3,), DType.INT32, 0.1 * scales, 0, data=np.int32([20, 99, -20]))
        else:
            ends = [g.tensor("x", x, DType.FLOAT32), g.tensor("y", y, DType.FLOAT32)]
            w = g.tensor("w", (3, 2), DType.FLOAT32, data=np.float32([[1, 2], [1e-12, -1e-12], [3, 4]]))
            b = g.tensor("b", (3,), DType.FLOAT32, data=np.float32([1.0, 2.0, -1.0]))
        g.op("FULLY_CONNECTED", [ends[0], w, b], [ends[1]])
        return g, ends

    models = [g.finish(ends[:1], ends[1:]) for g, ends in (made(quantized=one) for one in (True, False))]
    assert restore_biases(*models) == 1 and restore_biases(*models) == 0
    weights, bias = (next(t for t in models[0].main.tensors if t.name == name) for name in "wb")
    assert weights.data is not None and weights.data.tolist() == [[2, 4], [0, 0], [6, 8]]
    assert bias.data is not None and bias.quantization is not None and bias.data[[0, 2]].tolist() == [20, -20]
    assert bias.data[1] * bias.quantization.scale[1] == pytest.approx(2.0, rel=1e-6)
