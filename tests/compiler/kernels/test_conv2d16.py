"""conv2d16: CONV_2D of 16-bit activations at 0 LSB, in every rounding that LiteRT has for it."""

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

WIDE: dict[str, Any] = {"dtype": DType.INT16, "x_zero": 0, "y_zero": 0}


@examples(25)
@given(st.lists(convolutions(), min_size=1, max_size=12), seeds(), st.sampled_from(TARGETS), st.booleans())
def test_any_convolution(cases: list[dict[str, Any]], seed: int, target: str, narrow: bool) -> None:
    maker = ModelMaker(np.random.default_rng(seed))
    for case in cases:
        add_convolution(maker, "CONV_2D", case | WIDE | {"narrow": narrow})
    maker.check(target)


@examples(20)
@given(st.lists(convolutions(wide=True), min_size=1, max_size=12), seeds())
def test_scales_far_from_the_data(cases: list[dict[str, Any]], seed: int) -> None:
    maker = ModelMaker(np.random.default_rng(seed))
    for case in cases:
        add_convolution(maker, "CONV_2D", case | WIDE | {"gain": max(case["gain"], 2.0**-8)})
    maker.check()


NAMED: dict[str, dict[str, Any]] = {
    "first layer of three channels": {"cin": 3, "image": (16, 16), "stride": (2, 2), "activation": "RELU6"},
    "pointwise": {"kernel": (1, 1), "cin": 40, "cout": 24},
    "grouped": {"groups": 2, "cin": 16, "cout": 24},
    "grouped, one channel each": {"groups": 8, "cout": 24},
    "sums beyond 31 bits": {"cin": 600, "cout": 5, "kernel": (1, 1), "image": (3, 3), "gain": 4.0},
    "sums that wrap in 32 bits": {"cin": 600, "cout": 5, "kernel": (1, 1), "image": (3, 3), "narrow": True},
    "dilated": {"dilation": (2, 3), "image": (11, 11), "padding": "VALID"},
    "batch of three": {"batch": 3, "image": (4, 5)},
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("change", NAMED.values(), ids=NAMED)
def test_named(change: dict[str, Any], target: str) -> None:
    for seed in range(3):
        maker = ModelMaker(np.random.default_rng(seed))
        add_convolution(maker, "CONV_2D", BASE | WIDE | change)
        if "sums" in str(change) or change.get("cin") == 600:
            maker.data[-1][:] = np.sign(maker.data[-1]) * 32767
        maker.check(target)


def reason(**change: Any) -> str:
    maker = ModelMaker(np.random.default_rng(0))
    add_convolution(maker, "CONV_2D", BASE | WIDE | change)
    return refusal(maker.model())


def test_what_litert_refuses() -> None:
    assert "INT16 with zero point 3" in reason(x_zero=3)
    assert "below 2^7" in reason(gain=2.0**-24)


def test_a_bias_of_the_wrong_type() -> None:
    maker = ModelMaker(np.random.default_rng(0))
    x = maker.input((1, 4, 4, 8), DType.INT16, 0.01, 0)
    w = maker.constant(maker.values((4, 1, 1, 8), DType.INT8), DType.INT8, 0.01, 0)
    bias = maker.constant(np.zeros(4), DType.INT32, 0.0001, 0)
    maker.op("CONV_2D", [x, w, bias], maker.output((1, 4, 4, 4), DType.INT16, 0.01, 0), stride_h=1, stride_w=1)
    said = refusal(maker.model())
    assert "LiteRT reads int64" in said and "quantized_bias_type INT32" in said
