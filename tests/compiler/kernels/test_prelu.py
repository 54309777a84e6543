"""prelu: PRELU at 0 LSB."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.compiler.kernels.binary import check_broadcasts, check_every_pair, refused
from tests.sampling import examples


@examples(60)
@given(st.data())
def test_any_broadcast(data: st.DataObject) -> None:
    check_broadcasts("PRELU", data)


@examples(12)
@given(st.data())
def test_every_pair_of_bytes(data: st.DataObject) -> None:
    check_every_pair("PRELU", data)


def test_the_slope_may_not_widen_the_output() -> None:
    assert "same shape" in refused("PRELU", shapes=[(1, 1, 4), (1, 3, 4)])
