"""Tables of unary functions: shape, monotony and the corners that no reference defines."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.compiler.numbers import tables
from openneutron.compiler.numbers.tables import Scaling

PLAIN = Scaling(0.1, 0, 1 / 128, 0)


@pytest.mark.parametrize("function", [tables.logistic, tables.tanh, tables.exp, tables.elu])
def test_growing_functions_grow(function: object) -> None:
    table = tables.float_table(function, PLAIN).view(np.int8)  # type: ignore[arg-type]
    ordered = np.concatenate([table[128:], table[:128]]).astype(int)
    assert (np.diff(ordered) >= 0).all()


def test_the_example() -> None:
    assert tables.float_table(tables.tanh, PLAIN).view(np.int8)[10] == 97


def test_a_table_is_made_once_and_cannot_be_changed() -> None:
    table = tables.float_table(tables.tanh, PLAIN)
    assert tables.float_table(tables.tanh, Scaling(0.1, 0, 1 / 128, 0)) is table
    with pytest.raises(ValueError, match="read-only"):
        table[0] = 1


def test_infinity_saturates() -> None:
    table = tables.float_table(tables.exp, Scaling(10.0, 0, 1e-30, 0)).view(np.int8)
    assert table[127] == 127 and table[128] == 0


def test_unsigned_tables_start_at_zero() -> None:
    table = tables.float_table(tables.logistic, Scaling(0.1, 128, 1 / 256, 0, signed=False))
    assert table[0] == 0 and table[128] == 128 and table[255] == 255


def test_negation_wraps_at_the_end() -> None:
    table = tables.negate_table(PLAIN).view(np.int8)
    assert table[0x80] == -128 and table[5] == -5


def test_requantizing_with_equal_parameters_changes_nothing() -> None:
    same = Scaling(0.3, 17, 0.3, 17, signed=False)
    assert (tables.requantized_in_float(same) == np.arange(256)).all()
