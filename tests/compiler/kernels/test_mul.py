"""mul: MUL at 0 LSB."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from openneutron.litert.graph import DType
from tests.compiler.kernels.binary import check_broadcasts, check_every_pair, refused
from tests.golden import ModelMaker
from tests.sampling import examples


@examples(60)
@given(st.data())
def test_any_broadcast(data: st.DataObject) -> None:
    check_broadcasts("MUL", data)


@examples(12)
@given(st.data())
def test_every_pair_of_bytes(data: st.DataObject) -> None:
    check_every_pair("MUL", data)


def test_one_tensor_twice() -> None:
    maker = ModelMaker(np.random.default_rng(3))
    x = maker.input((1, 4, 4, 3), DType.INT8, 0.05, 3)
    maker.op("MUL", [x, x], maker.output((1, 4, 4, 3), DType.INT8, 0.2, -3))
    maker.check()


def test_a_product_beyond_thirty_bits_is_refused() -> None:
    assert "2^30" in refused("MUL", gain=2.0**-40)
