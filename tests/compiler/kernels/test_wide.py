"""wide: the channel tables of 16-bit activations; the kernels' own tests compare them with LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.compiler.kernels.wide import wide_table
from openneutron.compiler.signature import of_operator
from openneutron.litert.graph import DType
from openneutron.machine import targets
from openneutron.microcode.table import Rounding
from tests.golden import ModelMaker, refusal

CODES = ("FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV")


def _layer(inputs: int = 4, scale: float = 0.5) -> ModelMaker:
    maker = ModelMaker(np.random.default_rng(0))
    x = maker.input((1, inputs), DType.INT16, 0.5, 0)
    w = maker.constant(np.zeros((3, inputs)), DType.INT8, 0.5, 0)
    maker.op("FULLY_CONNECTED", [x, w], maker.output((1, 3), DType.INT16, scale, 0))
    return maker


def test_columns_are_padded_and_the_bias_is_split() -> None:
    model = _layer().model()
    op = of_operator(model.main, model.main.operators[0])
    bias = np.array([1, -1, 1 << 40])
    table = wide_table(op, bias, targets.load("imxrt700"))
    assert table.rounding is Rounding.SINGLE and table.narrow == 0
    low, multipliers, shifts, high = table.data.view("<i4").reshape(4, 8)
    assert low.tolist() == [1, -1, 0, 0, 0, 0, 0, 0] and high.tolist() == [0, -1, 256, 0, 0, 0, 0, 0]
    assert multipliers[0] / 2.0 ** shifts[0] == 0.5


def test_sums_beyond_47_bits_are_refused() -> None:
    assert "2^47" in refusal(_layer(1 << 25, 2.0**20).model(), "imx95")


def _biased(code: str, bias: int, channels: int = 3) -> ModelMaker:
    """A layer of four products per channel, whose last channel has this bias; 0.5 output steps for each 2^17."""
    maker = ModelMaker(np.random.default_rng(0))
    biases = maker.constant(np.array([0] * (channels - 1) + [bias]), DType.INT64, 2.0**-20, 0)
    image, made = (1, 1, 1, 4), (1, 1, 1, channels)
    shape = {"FULLY_CONNECTED": (channels, 4), "DEPTHWISE_CONV_2D": (1, 2, 2, channels)}.get(code, (channels, 1, 1, 4))
    if code == "DEPTHWISE_CONV_2D":
        image = (1, 2, 2, channels)
    elif code == "FULLY_CONNECTED":
        image, made = (1, 4), (1, channels)
    w = maker.constant(np.full(shape, 7), DType.INT8, 2.0**-10, 0)
    x = maker.input(image, DType.INT16, 2.0**-10, 0)
    y = maker.output(made, DType.INT16, 2.0**-2, 0)
    options = {} if code == "FULLY_CONNECTED" else {"stride_w": 1, "stride_h": 1, "padding": "VALID"}
    options |= {"depth_multiplier": 1} if code == "DEPTHWISE_CONV_2D" else {}
    given = [maker.constant(np.array(made), DType.INT32), w, x] if code == "TRANSPOSE_CONV" else [x, w]
    maker.op(code, [*given, biases], y, **options)
    return maker


@pytest.mark.parametrize("channels", [3, 70])  # few biases are in a signature by value, many are not
@pytest.mark.parametrize("bias", [1 << 47, -(1 << 47), 1 << 48, (1 << 47) - (1 << 24), (1 << 63) - 1, -(1 << 63)])
@pytest.mark.parametrize("code", CODES)
def test_biases_that_reach_47_bits_are_refused(code: str, bias: int, channels: int) -> None:
    said = refusal(_biased(code, bias, channels).model())
    assert "below 2^47" in said or (code == "FULLY_CONNECTED" and "INT32 output steps" in said)


@pytest.mark.parametrize("bias", [(1 << 46) + 12345, -(1 << 46), (1 << 47) - (1 << 24) - 1])
@pytest.mark.parametrize("code", CODES)
def test_biases_below_are_exact(code: str, bias: int) -> None:
    _biased(code, bias).check()


def test_results_outside_int32_are_refused() -> None:
    maker = ModelMaker(np.random.default_rng(0))
    bias = maker.constant(np.array([1 << 40]), DType.INT64, 0.25, 0)
    x, w = maker.input((1, 4), DType.INT16, 0.5, 0), maker.constant(np.ones((1, 4)), DType.INT8, 0.5, 0)
    maker.op("FULLY_CONNECTED", [x, w, bias], maker.output((1, 1), DType.INT16, 0.25, 0))
    assert "INT32 output steps" in refusal(maker.model())


def test_deep_products_of_two_activations_are_refused() -> None:
    maker = ModelMaker(np.random.default_rng(0))
    sides = [maker.input(shape, DType.INT16, 2.0**-20, 0) for shape in ((1, 1 << 17), (1 << 17, 1))]
    maker.op("BATCH_MATMUL", sides, maker.output((1, 1), DType.INT16, 0.5, 0))
    assert "2^47" in refusal(maker.model())
