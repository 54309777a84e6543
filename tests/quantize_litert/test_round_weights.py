"""Rounded weights leave less error in a layer's result than those rounded to nearest, for each kind of layer."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.litert import DType, Model
from openneutron.litert.build import GraphBuilder
from openneutron.litert.passes.float_twin import real_values
from openneutron.quantize_litert.layer_moments import LayerMoments
from openneutron.quantize_litert.round_weights import round_rows, round_weights

STEP = 0.5
RANDOM = np.random.default_rng(0)
WEIGHTS = RANDOM.uniform(-20, 20, (3, 2, 2, 4)).astype(np.float32)
# Neighbours and channels look alike, as in pictures.
PICTURES = (RANDOM.standard_normal((6, 1, 1, 1)) + 0.2 * RANDOM.standard_normal((6, 6, 6, 4))).astype(np.float32)
LAYERS = {
    "CONV_2D": WEIGHTS,
    "FULLY_CONNECTED": WEIGHTS.reshape(3, 16),
    "DEPTHWISE_CONV_2D": np.ascontiguousarray(WEIGHTS.reshape(1, 2, 2, 12)[..., :8]),
}


def layer(code: str, weights: np.ndarray, *, quantized: bool, bias: bool = True) -> Model:
    g = GraphBuilder()
    count = weights.shape[-1] if code == "DEPTHWISE_CONV_2D" else weights.shape[0]
    shape, end = ((1, 6, 6, 4), (1, 6, 6, count)) if code != "FULLY_CONNECTED" else ((9, 16), (9, count))
    if quantized:
        x, y = g.tensor("x", shape, DType.INT8, 0.1, 0), g.tensor("y", end, DType.INT8, 1.0, 0)
        w = g.tensor("w", weights.shape, DType.INT8, STEP, 0, data=np.rint(weights / STEP).astype(np.int8))
        b = g.tensor("b", (count,), DType.INT32, 0.1 * STEP, 0, data=np.full(count, 7, np.int32))
    else:
        x, y = g.tensor("x", shape, DType.FLOAT32), g.tensor("y", end, DType.FLOAT32)
        w = g.tensor("w", weights.shape, DType.FLOAT32, data=weights)
        b = g.tensor("b", (count,), DType.FLOAT32, data=np.full(count, 0.35, np.float32))
    window = {} if code == "FULLY_CONNECTED" else {"padding": "SAME", "stride_w": 1, "stride_h": 1}
    if code == "DEPTHWISE_CONV_2D":
        window["depth_multiplier"] = count // 4
    g.op(code, [x, w, b if bias else -1], [y], **window)
    return g.finish([x], [y])


def rows_of(code: str, data: np.ndarray) -> np.ndarray:
    """One row of weights for each output channel."""
    return data.reshape(-1, data.shape[-1]).T if code == "DEPTHWISE_CONV_2D" else data.reshape(len(data), -1)


@pytest.mark.parametrize("code", LAYERS)
def test_the_error_of_the_result_falls_and_its_mean_goes_into_the_bias(code: str) -> None:
    weights = LAYERS[code]
    made, floating = layer(code, weights, quantized=True), layer(code, weights, quantized=False)
    seen = LayerMoments(floating.main)
    for picture in PICTURES:
        seen.add({"x": picture.reshape(9, 16) if code == "FULLY_CONNECTED" else picture[None]})
    (moments,) = seen.of({}).values()
    stored, bias = (next(t for t in made.main.tensors if t.name == name) for name in "wb")

    def error() -> tuple[float, np.ndarray]:
        wrong = rows_of(code, real_values(stored) - weights)
        repeat = len(wrong) // len(moments.sums) if code == "DEPTHWISE_CONV_2D" else 1
        covariance, mean = (np.repeat(x, repeat, 0) if repeat > 1 else x for x in (moments.covariance, moments.mean))
        around = "ri,rij,rj->" if covariance.ndim > 2 else "ri,ij,rj->"
        return float(np.einsum(around, wrong, covariance, wrong)), (wrong * mean).sum(-1)

    before, _ = error()
    assert round_weights(made, floating, seen.of({})) == 1
    after, shift = error()
    assert after < 0.5 * before
    assert bias.data is not None and np.allclose((7 - bias.data) * 0.1 * STEP, shift, atol=0.1 * STEP)


def test_layers_without_moments_or_bias() -> None:
    made, floating = (layer("CONV_2D", WEIGHTS, quantized=one, bias=False) for one in (True, False))
    assert round_weights(made, floating, {}) == 0
    seen = LayerMoments(floating.main)
    seen.add({"x": PICTURES[:1]})
    assert round_weights(made, floating, seen.of({})) == 1


def test_units_of_channels_divide_the_moments() -> None:
    floating = layer("CONV_2D", WEIGHTS, quantized=False)
    units = np.array([1.0, 2.0, 4.0, 0.5])
    whole, divided = (LayerMoments(floating.main) for _ in range(2))
    whole.add({"x": PICTURES[:1]})
    divided.add({"x": PICTURES[:1] / units})
    (one,), (other,) = whole.of({"x": units}).values(), divided.of({}).values()
    assert np.allclose(one.covariance, other.covariance, atol=1e-4) and np.allclose(one.mean, other.mean, atol=1e-4)


def test_rows_of_one_covariance_and_of_their_own() -> None:
    alike = np.array([[1.0, 0.99], [0.99, 1.0]])
    wanted = np.array([[0.4, 0.4], [200.0, -0.2]])
    together = round_rows(wanted, alike)
    assert together.tolist()[0] in ([1.0, 0.0], [0.0, 1.0]) and together[1, 0] == 127
    assert (round_rows(wanted, np.stack([alike, alike])) == together).all()
    assert (round_rows(wanted[:1], np.eye(2)) == 0).all()
