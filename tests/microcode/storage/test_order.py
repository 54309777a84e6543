from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from openneutron.compiler.numbers.packing import pack_grouped
from openneutron.microcode.storage.order import Order
from tests.microcode.storage.samples import orders


@given(st.data())
def test_padding_goes_and_comes_back(data: st.DataObject) -> None:
    _, order = data.draw(orders())
    values = np.arange(order.weights).astype(np.int8)
    plain = order.with_padding(values)
    assert plain.size == order.plain_bytes
    found = order.without_padding(plain)
    assert found is not None and (found == values).all()
    assert int(order.block_weights.sum()) == order.weights


def test_the_order_is_the_packing_of_the_kernels() -> None:
    weights = np.arange(1, 1 + 2 * 3 * 4 * 5).astype(np.int8).reshape(6, 4, 5)
    packed = pack_grouped(weights, 2, 8, 8).view(np.int8)
    found = Order(2, 3, 4, 5, 8, 8).without_padding(packed)
    assert found is not None and sorted(found.tolist()) == sorted(weights.reshape(-1).tolist())


def test_padding_that_is_not_zero_is_told() -> None:
    plain = np.ones(64, np.int8)
    assert Order(1, 3, 1, 3, 8, 8).without_padding(plain) is None
