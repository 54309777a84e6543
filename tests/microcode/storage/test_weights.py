from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.errors import FormatError
from openneutron.microcode.storage import weights as coded
from tests.microcode.storage.samples import orders, weights


@pytest.mark.parametrize("size", [0, 1, 1 << 16, (1 << 16) + 5])
def test_bytes_are_counted_in_pieces(size: int) -> None:
    values = np.random.default_rng(size).integers(-128, 128, size, dtype=np.int8)
    assert (coded.count_bytes(values) == np.bincount(values.view(np.uint8), minlength=256)).all()


@given(st.data())
def test_both_codes_lose_nothing(data: st.DataObject) -> None:
    _, order = data.draw(orders())
    values = data.draw(weights(order.weights))
    stored, width = coded.write_static(values, order)
    assert (coded.read_static(np.frombuffer(stored, np.uint8), order, width) == values).all()
    k, bits = coded.rice_bits(np.bincount(values.view(np.uint8), minlength=256))
    if bits < 16 * order.weights:
        stored, width = coded.write_rice(values, order, k)
        assert (coded.read_rice(np.frombuffer(stored, np.uint8), order, k, width) == values).all()


@given(st.data(), st.binary(max_size=60), st.integers(0, 7))
def test_noise_is_refused_or_read_never_more(data: st.DataObject, stored: bytes, k: int) -> None:
    _, order = data.draw(orders())
    for read in (lambda d: coded.read_static(d, order, 1), lambda d: coded.read_rice(d, order, k, 1)):
        with contextlib.suppress(FormatError):
            assert read(np.frombuffer(stored, np.uint8)).size == order.weights
    if order.length > 1:
        with contextlib.suppress(FormatError):
            assert coded.read_groups(np.frombuffer(stored, np.uint8), order, 4 + k % 4, 1).size == order.plain_bytes


@given(st.data())
def test_codes_are_the_same_bytes_in_pieces(data: st.DataObject) -> None:
    _, order = data.draw(orders())
    values = data.draw(weights(order.weights))
    whole = coded.write_static(values, order), coded.write_rice(values, order, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coded, "_CODED_AT_ONCE", 7)
        assert (coded.write_static(values, order), coded.write_rice(values, order, 3)) == whole


def test_rice_is_best_where_weights_are_few_and_small() -> None:
    k, bits = coded.rice_bits(np.bincount(np.array([0, 255, 1, 0], np.uint8), minlength=256))
    assert (k, bits) == (0, 1 + 2 + 3 + 1)


def test_streams_that_leave_their_section_are_refused() -> None:
    from openneutron.microcode.storage.order import Order

    with pytest.raises(FormatError, match="streams"):
        coded.read_rice(np.array([9, 0], np.uint8), Order(1, 1, 4, 1, 1, 1), 0, 1)
