"""Biases take back what rounded weights add on average, for each kind of layer."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.litert import DType, Model
from openneutron.litert.build import GraphBuilder
from openneutron.run.correct_biases import correct_biases

STEP = 0.5
WEIGHTS = np.random.default_rng(0).uniform(-20, 20, (3, 2, 2, 4)).astype(np.float32)
MEAN = np.array([1.0, -2.0, 0.5, 3.0])


def layer(code: str, weights: np.ndarray, *, quantized: bool) -> Model:
    g = GraphBuilder()
    count = weights.shape[-1] if code == "DEPTHWISE_CONV_2D" else weights.shape[0]
    shape = (1, 4) if code == "FULLY_CONNECTED" else (1, 2, 2, 4)
    end = (1, count) if code == "FULLY_CONNECTED" else (1, 1, 1, count)
    if quantized:
        x, y = g.tensor("x", shape, DType.INT8, 0.1, 0), g.tensor("y", end, DType.INT8, 1.0, 0)
        stored = np.rint(weights / STEP).astype(np.int8)
        w = g.tensor("w", weights.shape, DType.INT8, STEP, 0, data=stored)
        b = g.tensor("b", (count,), DType.INT32, 0.1 * STEP, 0, data=np.full(count, 7, np.int32))
    else:
        x, y = g.tensor("x", shape, DType.FLOAT32), g.tensor("y", end, DType.FLOAT32)
        w = g.tensor("w", weights.shape, DType.FLOAT32, data=weights)
        b = g.tensor("b", (count,), DType.FLOAT32, data=np.full(count, 0.35, np.float32))
    window = {} if code == "FULLY_CONNECTED" else {"padding": "VALID", "stride_w": 1, "stride_h": 1}
    if code == "DEPTHWISE_CONV_2D":
        window["depth_multiplier"] = count // 4
    g.op(code, [x, w, b], [y], **window)
    return g.finish([x], [y])


@pytest.mark.parametrize(
    ("code", "weights"),
    [
        ("CONV_2D", WEIGHTS),
        ("FULLY_CONNECTED", WEIGHTS.reshape(12, 4)),
        ("DEPTHWISE_CONV_2D", WEIGHTS.reshape(1, 2, 2, 12)[..., :8]),
    ],
)
def test_a_bias_moves_by_the_mean_error(code: str, weights: np.ndarray) -> None:
    weights = np.ascontiguousarray(weights)
    made, floating = layer(code, weights, quantized=True), layer(code, weights, quantized=False)
    error = np.rint(weights / STEP) * STEP - weights
    if code == "DEPTHWISE_CONV_2D":
        wanted = (error * np.repeat(MEAN, 2)).sum((0, 1, 2))
    else:
        wanted = (error * MEAN).reshape(len(weights), -1).sum(1)
    assert correct_biases(made, floating, {"x": MEAN}) == 1
    bias = next(tensor.data for tensor in made.main.tensors if tensor.name == "b")
    assert bias is not None and np.allclose((7 - bias) * 0.1 * STEP, wanted, atol=0.1 * STEP) and (bias != 7).any()


def test_layers_without_statistics_stay() -> None:
    made = layer("CONV_2D", WEIGHTS, quantized=True)
    assert correct_biases(made, layer("CONV_2D", WEIGHTS, quantized=False), {}) == 0
    assert all(
        (tensor.data == 7).all() for tensor in made.main.tensors if tensor.name == "b" and tensor.data is not None
    )
