"""depthwise_conv2d16: DEPTHWISE_CONV_2D of 16-bit activations at 0 LSB."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.litert.graph import DType
from tests.compiler.kernels.test_conv2d import BASE, add_convolution, convolutions
from tests.compiler.kernels.test_conv2d16 import WIDE
from tests.golden import TARGETS, ModelMaker, refusal, seeds
from tests.sampling import examples


@examples(25)
@given(st.lists(convolutions(depthwise=True), min_size=1, max_size=12), seeds(), st.sampled_from(TARGETS))
def test_any_convolution(cases: list[dict[str, Any]], seed: int, target: str) -> None:
    maker = ModelMaker(np.random.default_rng(seed))
    for case in cases:
        add_convolution(maker, "DEPTHWISE_CONV_2D", case | WIDE)
    maker.check(target)


NAMED: dict[str, dict[str, Any]] = {
    "many channels": {"cin": 40, "cout": 40, "image": (9, 9)},
    "stride of two": {"cin": 24, "cout": 24, "stride": (2, 2), "image": (9, 10)},
    "five by five, dilated": {"cin": 8, "cout": 8, "kernel": (5, 5), "dilation": (2, 2), "image": (14, 14)},
    "a multiplier of three": {"cin": 8, "cout": 24},
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("change", NAMED.values(), ids=NAMED)
def test_named(change: dict[str, Any], target: str) -> None:
    maker = ModelMaker(np.random.default_rng(3))
    add_convolution(maker, "DEPTHWISE_CONV_2D", BASE | WIDE | change)
    maker.check(target)


def test_a_bias_of_32_bits_is_refused_as_litert_does() -> None:
    maker = ModelMaker(np.random.default_rng(0))
    x = maker.input((1, 4, 4, 8), DType.INT16, 0.01, 0)
    w = maker.constant(maker.values((1, 1, 1, 8), DType.INT8), DType.INT8, 0.01, 0)
    bias = maker.constant(np.zeros(8), DType.INT32, 0.0001, 0)
    y = maker.output((1, 4, 4, 8), DType.INT16, 0.01, 0)
    maker.op("DEPTHWISE_CONV_2D", [x, w, bias], y, stride_h=1, stride_w=1, padding="SAME")
    assert "LiteRT reads int64" in refusal(maker.model())
