"""fully_connected16: FULLY_CONNECTED of 16-bit activations at 0 LSB, rounded once in double as LiteRT does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.litert.graph import DType
from tests.golden import ACTIVATIONS, INT32_BIAS, TARGETS, ModelMaker, refusal, scales, seeds, spread
from tests.sampling import examples


def add_layer(maker: ModelMaker, case: dict[str, Any]) -> None:
    rng, inputs, outputs = maker.rng, case["inputs"], case["outputs"]
    count = outputs if case["per_channel"] else 1
    weight_scales = (case["w_scale"] * 2.0 ** rng.uniform(-3, 2, count)).astype(np.float32)
    scale = spread(case["x_scale"], float(np.median(weight_scales)), inputs, case["gain"])
    x = maker.input((case["vectors"], inputs), DType.INT16, case["x_scale"], 0)
    given_ = [x, maker.constant(maker.values((outputs, inputs), DType.INT8), DType.INT8, weight_scales, 0)]
    if case["bias"]:
        bias_scale = [float(np.float32(case["x_scale"] * float(s))) for s in weight_scales]
        reach = int(rng.choice([100, 2**16, 2**24]))
        kind = DType.INT32 if case["narrow"] else DType.INT64
        given_.append(maker.constant(rng.integers(-reach, reach, outputs), kind, bias_scale, 0))
    y = maker.output((case["vectors"], outputs), DType.INT16, scale, 0)
    options = {"quantized_bias_type": INT32_BIAS} if case["narrow"] else {}
    maker.op("FULLY_CONNECTED", given_, y, fused_activation_function=case["activation"], **options)


@st.composite
def layers(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "inputs": draw(st.integers(1, 80) | st.just(700)), "outputs": draw(st.integers(1, 40)),
        "vectors": draw(st.integers(1, 5)), "per_channel": draw(st.booleans()), "bias": draw(st.booleans()),
        "narrow": draw(st.booleans()), "x_scale": draw(scales(-14, -6)), "w_scale": draw(scales(-10, -4)),
        "gain": 2.0 ** draw(st.floats(-2, 4)), "activation": draw(st.sampled_from(ACTIVATIONS)),
    }  # fmt: skip


@examples(25)
@given(st.lists(layers(), min_size=1, max_size=8), seeds(), st.sampled_from(TARGETS))
def test_any_layer(cases: list[dict[str, Any]], seed: int, target: str) -> None:
    maker = ModelMaker(np.random.default_rng(seed))
    for case in cases:
        add_layer(maker, case)
    maker.check(target)


@pytest.mark.parametrize("ratio", [0.5, 0.25, 1 / 3, 0.1])
def test_halves_are_rounded_as_in_double(ratio: float) -> None:
    """A bias holds the sum between two steps while the input is 0."""
    maker = ModelMaker(np.random.default_rng(0))
    sums = np.arange(-3000, 3000) * 5
    x = maker.input((1, 2), DType.INT16, 1.0, 0)
    maker.data[-1][:] = 0
    w = maker.constant(maker.values((len(sums), 2), DType.INT8), DType.INT8, float(np.float32(ratio)), 0)
    bias = maker.constant(sums, DType.INT64, float(np.float32(ratio)), 0)
    maker.op("FULLY_CONNECTED", [x, w, bias], maker.output((1, len(sums)), DType.INT16, 1.0, 0))
    maker.check()


def test_weights_with_a_zero_point_are_refused() -> None:
    maker = ModelMaker(np.random.default_rng(0))
    x = maker.input((1, 4), DType.INT16, 0.01, 0)
    w = maker.constant(maker.values((3, 4), DType.INT8), DType.INT8, 0.01, 2)
    maker.op("FULLY_CONNECTED", [x, w], maker.output((1, 3), DType.INT16, 0.01, 0))
    assert "zero point" in refusal(maker.model())
