"""minmax: MAXIMUM and MINIMUM of stored values, at 0 LSB."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.litert.graph import DType
from tests.compiler.kernels.binary import check_broadcasts, check_every_pair
from tests.golden import ModelMaker, refusal
from tests.sampling import examples


@pytest.mark.parametrize("code", ["MAXIMUM", "MINIMUM"])
@examples(60)
@given(st.data())
def test_any_broadcast(code: str, data: st.DataObject) -> None:
    check_broadcasts(code, data)


@pytest.mark.parametrize("code", ["MAXIMUM", "MINIMUM"])
@examples(12)
@given(st.data())
def test_every_pair_of_bytes(code: str, data: st.DataObject) -> None:
    check_every_pair(code, data)


def test_types_must_agree() -> None:
    maker = ModelMaker(np.random.default_rng(0))
    inputs = [maker.input((1, 4), DType.INT8, 0.1, 0), maker.input((1, 4), DType.UINT8, 0.1, 0)]
    maker.op("MAXIMUM", inputs, maker.output((1, 4), DType.INT8, 0.1, 0))
    assert "of one type" in refusal(maker.model())
