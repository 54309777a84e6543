"""The checker's arithmetic equals the compiler's, which was written apart from it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from openneutron.certify import numbers
from openneutron.compiler.numbers import multipliers, tables


@given(st.floats(1e-12, 1e9), st.integers(-(1 << 31), (1 << 31) - 1))
def test_multipliers_and_rescaling(real: float, acc: int) -> None:
    m, shift = numbers.multiplier(real)
    assert (m, shift) == multipliers.multiplier(real)
    if shift <= 30:
        assert numbers.rescale(acc, m, shift) == tables.mbqm(acc, m, shift)


@given(st.floats(1e-6, 0.9), st.booleans(), st.integers(-3, 3))
def test_exact_rounding_is_told_from_inexact(real: float, negative: bool, off: int) -> None:
    factor = -real if negative else real
    try:
        table = multipliers.exact_multipliers([factor], -128, 127)
    except ValueError:
        return
    m, word, mode = int(table.multipliers[0]), int(table.shifts[0]), int(table.rounding)
    assert numbers.rounds_as_double(factor, mode, m, word, -128, 127)
    assert not numbers.rounds_as_double(factor * 1.01, mode, m, word, -128, 127) or abs(factor) * (1 << 31) < 1
