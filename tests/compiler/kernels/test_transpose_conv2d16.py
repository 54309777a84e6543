"""transpose_conv2d16: TRANSPOSE_CONV of 16-bit activations at 0 LSB."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from openneutron.compiler.numbers.geometry import SAME, axis
from openneutron.litert.graph import DType
from tests.golden import INT32_BIAS, TARGETS, ModelMaker, scales, seeds, spread
from tests.sampling import examples


def add_transposed(maker: ModelMaker, case: dict[str, Any]) -> None:
    rng, (kh, kw), cin, cout = maker.rng, case["kernel"], case["cin"], case["cout"]
    padding = SAME if case["padding"] == "SAME" else 1
    sizes = [
        axis(size, kernel, stride, 1, padding)[0]
        for size, kernel, stride in zip(case["image"], case["kernel"], case["stride"], strict=True)
    ]
    weight_scales = (case["w_scale"] * 2.0 ** rng.uniform(-3, 2, cout)).astype(np.float32)
    scale = spread(case["x_scale"], float(np.median(weight_scales)), cin * 4, case["gain"])
    x = maker.input((case["batch"], *sizes, cin), DType.INT16, case["x_scale"], 0)
    w = maker.constant(maker.values((cout, kh, kw, cin), DType.INT8), DType.INT8, weight_scales, 0)
    shape = maker.constant(np.array([case["batch"], *case["image"], cout]), DType.INT32)
    inputs = [shape, w, x]
    if case["bias"]:
        kind = DType.INT32 if case["narrow"] else DType.INT64
        bias_scale = [float(np.float32(case["x_scale"] * float(s))) for s in weight_scales]
        inputs.append(maker.constant(rng.integers(-(2**20), 2**20, cout), kind, bias_scale, 0))
    y = maker.output((case["batch"], *case["image"], cout), DType.INT16, scale, 0)
    options = {"quantized_bias_type": INT32_BIAS} if case["narrow"] else {}
    maker.op(
        "TRANSPOSE_CONV", inputs, y, padding=case["padding"], stride_h=case["stride"][0], stride_w=case["stride"][1],
        **options,
    )  # fmt: skip


@st.composite
def transposed(draw: st.DrawFn) -> dict[str, Any]:
    kernel, padding = draw(st.tuples(*[st.integers(1, 4)] * 2)), draw(st.sampled_from(["SAME", "VALID"]))
    image = draw(st.tuples(*[st.integers(1, 9)] * 2))
    if padding == "VALID":
        image = (max(image[0], kernel[0]), max(image[1], kernel[1]))
    return {
        "kernel": kernel, "padding": padding, "image": image, "stride": draw(st.tuples(*[st.integers(1, 3)] * 2)),
        "cin": draw(st.integers(1, 10)), "cout": draw(st.integers(1, 10)), "batch": draw(st.sampled_from([1, 1, 2])),
        "bias": draw(st.booleans()), "narrow": draw(st.booleans()), "x_scale": draw(scales(-14, -6)),
        "w_scale": draw(scales(-10, -4)), "gain": 2.0 ** draw(st.floats(-2, 2)),
    }  # fmt: skip


@examples(25)
@given(st.lists(transposed(), min_size=1, max_size=8), seeds(), st.sampled_from(TARGETS))
def test_any_transposed_convolution(cases: list[dict[str, Any]], seed: int, target: str) -> None:
    maker = ModelMaker(np.random.default_rng(seed))
    for case in cases:
        add_transposed(maker, case)
    maker.check(target)
