"""add: ADD and SUB at 0 LSB."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.compiler.kernels.binary import check_broadcasts, check_every_pair, refused
from tests.sampling import examples


@pytest.mark.parametrize("code", ["ADD", "SUB"])
@examples(60)
@given(st.data())
def test_any_broadcast(code: str, data: st.DataObject) -> None:
    check_broadcasts(code, data)


@pytest.mark.parametrize("code", ["ADD", "SUB"])
@examples(12)
@given(st.data())
def test_every_pair_of_bytes(code: str, data: st.DataObject) -> None:
    check_every_pair(code, data)


def test_a_sum_far_finer_than_its_inputs_is_refused() -> None:
    assert "2^19" in refused("ADD", gain=2.0**-21)


def test_an_activation_without_bounds_is_refused() -> None:
    assert "activation number 4" in refused("ADD", activation="TANH")
