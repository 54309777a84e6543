"""max_pool2d and avg_pool2d share their cases; this file tests MAX_POOL_2D at 0 LSB."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.compiler.numbers.geometry import SAME, VALID, axis
from openneutron.litert.graph import DType
from tests.golden import ACTIVATIONS, TARGETS, ModelMaker, refusal, scales, seeds, zero_points
from tests.sampling import examples


@st.composite
def pools(draw: st.DrawFn) -> dict[str, Any]:
    dtype = draw(st.sampled_from([DType.INT8, DType.UINT8, DType.INT16]))
    pair = st.tuples(st.integers(1, 5), st.integers(1, 5))
    kernel, padding = draw(pair), draw(st.sampled_from(["SAME", "VALID"]))
    image = draw(st.tuples(st.integers(1, 10), st.integers(1, 10)))
    if padding == "VALID":
        image = (max(image[0], kernel[0]), max(image[1], kernel[1]))
    scale, zero = draw(scales(-6, 2)), draw(zero_points(dtype))
    same = draw(st.booleans())
    return {
        "dtype": dtype, "kernel": kernel, "padding": padding, "image": image, "stride": draw(pair),
        "channels": draw(st.integers(1, 19)), "batch": draw(st.sampled_from([1, 1, 2])),
        "activation": draw(st.sampled_from(ACTIVATIONS)), "x_scale": scale, "x_zero": zero,
        # The reference passes raw values on, whatever the output says of them.
        "y_scale": scale if same else draw(scales(-6, 2)), "y_zero": zero if same else draw(zero_points(dtype)),
    }  # fmt: skip


def add_pool(maker: ModelMaker, code: str, case: dict[str, Any]) -> None:
    padding = SAME if case["padding"] == "SAME" else VALID
    sizes = [
        axis(size, kernel, stride, 1, padding)[0]
        for size, kernel, stride in zip(case["image"], case["kernel"], case["stride"], strict=True)
    ]
    shape = (case["batch"], *case["image"], case["channels"])
    x = maker.input(shape, case["dtype"], case["x_scale"], case["x_zero"])
    y = maker.output((case["batch"], *sizes, case["channels"]), case["dtype"], case["y_scale"], case["y_zero"])
    maker.op(
        code, [x], y, padding=case["padding"], stride_h=case["stride"][0], stride_w=case["stride"][1],
        filter_height=case["kernel"][0], filter_width=case["kernel"][1], fused_activation_function=case["activation"],
    )  # fmt: skip


@examples(100)
@given(st.lists(pools(), min_size=1, max_size=12), seeds(), st.sampled_from(TARGETS))
def test_any_pool(cases: list[dict[str, Any]], seed: int, target: str) -> None:
    maker = ModelMaker(np.random.default_rng(seed))
    for case in cases:
        add_pool(maker, "MAX_POOL_2D", case)
    maker.check(target)


BASE: dict[str, Any] = {
    "dtype": DType.INT8, "kernel": (2, 2), "padding": "VALID", "image": (8, 8), "stride": (2, 2), "channels": 16,
    "batch": 1, "activation": "NONE", "x_scale": 0.1, "x_zero": 4, "y_scale": 0.1, "y_zero": 4,
}  # fmt: skip

NAMED: dict[str, dict[str, Any]] = {
    "halving": {},
    "overlapping": {"kernel": (3, 3), "padding": "SAME", "image": (9, 9)},
    "whole image": {"kernel": (8, 8), "stride": (8, 8)},
    "window larger than the image": {"kernel": (5, 5), "padding": "SAME", "image": (2, 2), "stride": (1, 1)},
    "older converter": {"dtype": DType.UINT8, "activation": "RELU6"},
}


@pytest.mark.parametrize("change", NAMED.values(), ids=NAMED)
def test_named(change: dict[str, Any]) -> None:
    maker = ModelMaker(np.random.default_rng(7))
    add_pool(maker, "MAX_POOL_2D", BASE | change)
    maker.check()


@pytest.mark.parametrize("code", ["MAX_POOL_2D", "AVERAGE_POOL_2D"])
def test_refused(code: str) -> None:
    def refused(x_shape: tuple[int, ...], y_shape: tuple[int, ...], y_dtype: DType = DType.INT8, **options: Any) -> str:
        maker = ModelMaker(np.random.default_rng(1))
        x = maker.input(x_shape, DType.INT8, 0.5, 0)
        y = maker.output(y_shape, y_dtype, 0.5, 0)
        given_options = {"padding": "VALID", "stride_h": 2, "stride_w": 2, "filter_height": 2, "filter_width": 2}
        maker.op(code, [x], y, **(given_options | options))
        return refusal(maker.model())

    assert refused((1, 4, 4, 3), (1, 2, 2, 3)) == ""
    assert "output [1, 2, 2, 4]" in refused((1, 4, 4, 3), (1, 2, 2, 4))
    assert "the window gives [1, 2, 2]" in refused((1, 4, 4, 3), (1, 2, 3, 3))
    assert "output uint8" in refused((1, 4, 4, 3), (1, 2, 2, 3), DType.UINT8)
    assert "larger than the input" in refused((1, 4, 4, 3), (1, 1, 1, 3), filter_height=9)
    assert "kernel [0, 2]" in refused((1, 4, 4, 3), (1, 2, 2, 3), filter_height=0)
