"""requantize: QUANTIZE between 8-bit types and the RELU family, all 256 inputs at 0 LSB."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.litert.graph import DType
from tests.compiler.kernels.test_lut import EVERY_BYTE
from tests.golden import TARGETS, ModelMaker, refusal, scales, zero_points
from tests.sampling import examples

WIDE = {"QUANTIZE": (DType.INT8, DType.INT16), "RELU": (DType.INT16,), "RELU6": (DType.INT16,)}
CODES = ("QUANTIZE", "RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1")
BYTES = st.sampled_from([DType.INT8, DType.UINT8])


@pytest.mark.parametrize("code", CODES)
@examples(20)
@given(st.data())
def test_rescaling(code: str, data: st.DataObject) -> None:
    maker = ModelMaker(np.random.default_rng(0))
    for _ in range(6):
        dtype = data.draw(BYTES)
        to = data.draw(BYTES) if code == "QUANTIZE" else dtype
        x = maker.input((1, 16, 2, 8), dtype, data.draw(scales(-14, 6)), data.draw(zero_points(dtype)))
        maker.data[-1] = EVERY_BYTE[dtype].reshape(1, 16, 2, 8).copy()
        y = maker.output((1, 16, 2, 8), to, data.draw(scales(-10, 4)), data.draw(zero_points(to)))
        maker.op(code, [x], y)
    maker.check(data.draw(st.sampled_from(TARGETS)))


@pytest.mark.parametrize("code", WIDE)
@examples(20)
@given(st.data())
def test_sixteen_bits(code: str, data: st.DataObject) -> None:
    """Every value of 16 bits to 16 and 8, and bytes to 16."""
    maker = ModelMaker(np.random.default_rng(0))
    for dtype in WIDE[code]:
        to = data.draw(st.sampled_from([DType.INT8, DType.INT16])) if dtype is DType.INT16 else DType.INT16
        to = to if code == "QUANTIZE" else dtype
        x = maker.input((1, 64, 32, 32), dtype, data.draw(scales(-14, 0)), data.draw(zero_points(dtype)))
        maker.data[-1] = np.arange(-32768, 32768).astype(dtype.numpy).reshape(1, 64, 32, 32)
        maker.op(code, [x], maker.output((1, 64, 32, 32), to, data.draw(scales(-14, 0)), data.draw(zero_points(to))))
    maker.check(data.draw(st.sampled_from(TARGETS)))


def test_what_litert_does_not_quantize() -> None:
    maker = ModelMaker(np.random.default_rng(0))
    x = maker.input((1, 4), DType.INT16, 0.01, 0)
    maker.op("QUANTIZE", [x], maker.output((1, 4), DType.UINT8, 0.1, 0))
    assert "between UINT8 and INT16" in refusal(maker.model())
    maker = ModelMaker(np.random.default_rng(0))
    x = maker.input((1, 4), DType.INT16, 0.01, 3)
    maker.op("QUANTIZE", [x], maker.output((1, 4), DType.INT8, 0.1, 0))
    assert "INT16 with zero point 3" in refusal(maker.model())


def test_equal_scales_across_signs() -> None:
    maker = ModelMaker(np.random.default_rng(0))
    x = maker.input((256,), DType.UINT8, 0.25, 130)
    maker.data[-1] = EVERY_BYTE[DType.UINT8].copy()
    maker.op("QUANTIZE", [x], maker.output((256,), DType.INT8, 0.25, 2))
    maker.check()


def test_float_stays_on_the_cpu() -> None:
    maker = ModelMaker(np.random.default_rng(0))
    x = maker.builder.tensor("x", (1, 4), DType.FLOAT32)
    maker.inputs.append(x)
    maker.op("QUANTIZE", [x], maker.output((1, 4), DType.INT8, 0.1, 0))
    assert "float32" in refusal(maker.model())


def test_a_ratio_beyond_thirty_bits_is_refused() -> None:
    maker = ModelMaker(np.random.default_rng(0))
    x = maker.input((1, 4), DType.INT8, 2.0**20, 0)
    maker.op("QUANTIZE", [x], maker.output((1, 4), DType.INT8, 2.0**-12, 0))
    assert "2^30" in refusal(maker.model())
