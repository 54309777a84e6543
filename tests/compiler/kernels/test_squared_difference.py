"""squared_difference: SQUARED_DIFFERENCE at 0 LSB."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from openneutron.litert.graph import DType
from tests.compiler.kernels.binary import check_broadcasts, check_every_pair, refused
from tests.sampling import examples


@examples(60)
@given(st.data())
def test_any_broadcast(data: st.DataObject) -> None:
    check_broadcasts("SQUARED_DIFFERENCE", data)


@examples(12)
@given(st.data())
def test_every_pair_of_bytes(data: st.DataObject) -> None:
    check_every_pair("SQUARED_DIFFERENCE", data)


def test_an_output_that_the_reference_aborts_on_is_refused() -> None:
    assert "2^14" in refused("SQUARED_DIFFERENCE", gain=2.0**-20)


def test_unsigned_is_refused() -> None:
    assert "uint8" in refused("SQUARED_DIFFERENCE", dtype=DType.UINT8, z1=0)
