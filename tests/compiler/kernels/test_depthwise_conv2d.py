"""depthwise_conv2d against LiteRT's reference kernels at 0 LSB."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.litert.graph import DType
from tests.compiler.kernels.test_conv2d import BASE, add_convolution, convolutions
from tests.golden import TARGETS, ModelMaker, refusal, seeds
from tests.sampling import examples


@examples(100)
@given(st.lists(convolutions(depthwise=True), min_size=1, max_size=12), seeds(), st.sampled_from(TARGETS))
def test_any_depthwise(cases: list[dict[str, Any]], seed: int, target: str) -> None:
    maker = ModelMaker(np.random.default_rng(seed))
    for case in cases:
        add_convolution(maker, "DEPTHWISE_CONV_2D", case)
    maker.check(target)


@examples(35)
@given(st.lists(convolutions(depthwise=True, wide=True), min_size=1, max_size=12), seeds())
def test_scales_far_from_the_data(cases: list[dict[str, Any]], seed: int) -> None:
    maker = ModelMaker(np.random.default_rng(seed))
    for case in cases:
        add_convolution(maker, "DEPTHWISE_CONV_2D", case)
    maker.check()


NAMED: dict[str, dict[str, Any]] = {
    "stride 2": {"cin": 24, "cout": 24, "image": (15, 15), "stride": (2, 2), "activation": "RELU6"},
    "depth multiplier of 4": {"cin": 3, "cout": 12},
    "one channel in": {"cin": 1, "cout": 20, "kernel": (4, 2)},
    "no bias": {"cin": 16, "cout": 16, "no_bias": True},
    "older converter": {"dtype": DType.UINT8, "x_zero": 128, "y_zero": 100, "cout": 8, "activation": "RELU"},
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("change", NAMED.values(), ids=NAMED)
def test_named(change: dict[str, Any], target: str) -> None:
    maker = ModelMaker(np.random.default_rng(7))
    add_convolution(maker, "DEPTHWISE_CONV_2D", BASE | change)
    maker.check(target)


@pytest.mark.parametrize("depth_multiplier", [0, 1, 7])
def test_depth_multiplier_comes_from_the_shapes(depth_multiplier: int) -> None:
    maker = ModelMaker(np.random.default_rng(3))
    x = maker.input((1, 5, 5, 2), DType.INT8, 0.1, 3)
    w = maker.constant(maker.values((1, 3, 3, 4), DType.INT8), DType.INT8, 0.02, 0)
    y = maker.output((1, 3, 3, 4), DType.INT8, 0.5, -4)
    maker.op("DEPTHWISE_CONV_2D", [x, w], y, padding="VALID", stride_h=1, stride_w=1, depth_multiplier=depth_multiplier)
    maker.check()


def refused(w_shape: tuple[int, ...], *, w_zero: int = 0, bias: bool = True) -> str:
    maker = ModelMaker(np.random.default_rng(1))
    x = maker.input((1, 4, 4, 2), DType.INT8, 0.5, 0)
    w = maker.constant(np.ones(w_shape), DType.INT8, 0.5, w_zero)
    y = maker.output((1, 4, 4, 4), DType.INT8, 1.0, 0)
    inputs = [x, w] if bias else [x, w, -1]
    maker.op("DEPTHWISE_CONV_2D", inputs, y, padding="SAME", stride_h=1, stride_w=1)
    return refusal(maker.model())


def test_refused() -> None:
    assert refused((1, 3, 3, 4)) == ""
    assert "filter [2, 3, 3, 4]" in refused((2, 3, 3, 4))
    assert "filter [1, 3, 3, 3]" in refused((1, 3, 3, 3))
    assert "zero point other than 0" in refused((1, 3, 3, 4), w_zero=2)
    assert "bias index is -1" in refused((1, 3, 3, 4), bias=False)
