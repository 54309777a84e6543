"""Weights with negative scales: LiteRT multiplies by them, and so do the kernels, at 0 LSB."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.errors import FormatError
from openneutron.litert.build import GraphBuilder
from openneutron.litert.graph import DType
from openneutron.litert.write import write_model
from openneutron.run.runner import LiteRtRunner
from tests.golden import TARGETS, assert_exact, seeds
from tests.sampling import examples

SIZE, CHANNELS = 5, 12


def model(code: str, rng: np.random.Generator) -> bytes:
    """One layer whose weights have scales of both signs."""
    g = GraphBuilder()
    shapes = {
        "CONV_2D": (CHANNELS, 3, 3, 4),
        "DEPTHWISE_CONV_2D": (1, 3, 3, CHANNELS),
        "TRANSPOSE_CONV": (CHANNELS, 3, 3, 4),
        "FULLY_CONNECTED": (CHANNELS, SIZE * SIZE * 4),
    }
    shape = shapes[code]
    cin = CHANNELS if code == "DEPTHWISE_CONV_2D" else 4
    x = g.tensor("x", (1, SIZE, SIZE, cin), DType.INT8, scale=0.05, zero_point=3)
    scales = [float(np.float32(v)) for v in rng.uniform(0.001, 0.02, CHANNELS) * rng.choice([-1, 1], CHANNELS)]
    per_channel: dict[str, Any] = {"zero_point": [0] * CHANNELS, "axis": 3 if code == "DEPTHWISE_CONV_2D" else 0}
    w = g.tensor("w", shape, DType.INT8, scale=scales, data=rng.integers(-128, 128, shape, np.int8), **per_channel)
    steps = [float(np.float32(0.05 * scale)) for scale in scales]
    biases = rng.integers(-3000, 3000, CHANNELS).astype(np.int32)
    b = g.tensor("b", (CHANNELS,), DType.INT32, scale=steps, zero_point=[0] * CHANNELS, data=biases)
    out = (1, CHANNELS) if code == "FULLY_CONNECTED" else (1, SIZE, SIZE, CHANNELS)
    y = g.tensor("y", out, DType.INT8, scale=0.25, zero_point=-5)
    window = {"padding": "SAME", "stride_h": 1, "stride_w": 1}
    if code == "TRANSPOSE_CONV":
        wanted = g.tensor("wanted", (4,), DType.INT32, data=list(out))
        g.op(code, [wanted, w, x, b], [y], **window)
    elif code == "FULLY_CONNECTED":
        g.op(code, [x, w, b], [y], fused_activation_function="NONE")
    else:
        extra = {"depth_multiplier": 1} if code == "DEPTHWISE_CONV_2D" else {}
        g.op(code, [x, w, b], [y], fused_activation_function="RELU6", **window, **extra)
    return write_model(g.finish([x], [y]))


@pytest.mark.parametrize("code", ["CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED"])
@examples(20)
@given(seeds(), st.sampled_from(TARGETS))
def test_both_signs(code: str, seed: int, target: str) -> None:
    rng = np.random.default_rng(seed)
    data = model(code, rng)
    shape = LiteRtRunner(data).inputs[0].shape
    assert_exact(data, [rng.integers(-128, 128, shape, np.int8)], target)


def test_an_activation_may_not_have_one() -> None:
    g = GraphBuilder()
    x, y = (g.tensor(name, (1, 4), DType.INT8, scale=-0.1, zero_point=0) for name in "xy")
    g.op("TANH", [x], [y])
    with pytest.raises(FormatError, match=r"its scale is -0\.1"):
        LiteRtRunner(write_model(g.finish([x], [y])))
