"""lut16: LOGISTIC and TANH of 16 bits, every input at 0 LSB."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from openneutron.compiler.kernels.lut16 import logistic_table
from openneutron.litert.graph import DType
from tests.golden import ModelMaker, refusal, scales
from tests.sampling import examples

EVERY = np.arange(-32768, 32768).astype(np.int16).reshape(1, 64, 32, 32)


def model(code: str, scale: float, out_scale: float = 2.0**-15) -> ModelMaker:
    maker = ModelMaker(np.random.default_rng(0))
    x = maker.input(EVERY.shape, DType.INT16, scale, 0)
    maker.data[-1] = EVERY.copy()
    maker.op(code, [x], maker.output(EVERY.shape, DType.INT16, out_scale, 0))
    return maker


@pytest.mark.parametrize("code", ["LOGISTIC", "TANH"])
@examples(10)
@given(scales(-26, 2))
def test_every_value(code: str, scale: float) -> None:
    model(code, scale).check()


@pytest.mark.parametrize("code", ["LOGISTIC", "TANH"])
@pytest.mark.parametrize("exponent", [-10, -11, -12, -13, -15])
def test_powers_of_two(code: str, exponent: int) -> None:
    model(code, 2.0**exponent).check()


def test_the_table_ends_at_one() -> None:
    table = logistic_table().view("<u2")
    assert (table[0], table[255], len(table)) == (32768, 65535, 256) and (np.diff(table.astype(int)) >= 0).all()


def test_scales_that_litert_refuses() -> None:
    assert "2^-15" in refusal(model("LOGISTIC", 0.001, 2.0**-8).model())
    assert "5.33" in refusal(model("TANH", 8.0).model())
