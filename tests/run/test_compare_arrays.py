"""Outputs as arrays: decibels where there are some, and a sentence where there are none."""

from __future__ import annotations

import numpy as np

from openneutron.report.accuracy import FULL, warnings_of_outputs
from openneutron.run.compare_arrays import compare_arrays


def test_decibels_agreement_and_what_has_neither() -> None:
    x = np.arange(1.0, 9.0).reshape(2, 4)
    assert round(compare_arrays("y", x, x * 1.1).sqnr or 0) == 20
    assert compare_arrays("y", x, x).sqnr == FULL
    assert compare_arrays("y", x * 0 + np.arange(4), x * 0 + np.arange(4)).note.startswith("constant")
    assert compare_arrays("y", np.zeros((2, 4)), x).sqnr == -FULL
    assert compare_arrays("y", x.astype(int), x.astype(int) % 5).agreement == 0.5
    assert compare_arrays("y", np.zeros((2, 0)), np.zeros((2, 0))).note == "empty"


def test_nan_and_infinity_are_counted() -> None:
    x = np.ones((2, 2))
    bad = compare_arrays("y", x, np.array([[1, np.nan], [1, 1]]))
    assert bad.sqnr == -FULL and bad.wrong == 1 and "NaN" in warnings_of_outputs([bad])[0]
    assert compare_arrays("y", np.array([[1, np.inf], [1, 1]]), x).wrong == 1


def test_a_lost_column_inside_a_joined_piece_is_found() -> None:
    x = np.random.default_rng(0).normal(size=(16, 8, 6))
    wanted = x * [1000, 1000, 1000, 0.1, 1000, 1000]
    (text,) = warnings_of_outputs([compare_arrays("y", wanted, (wanted / 10).round() * 10, LABELS)])
    assert (
        text.startswith("column 3 of y: ") and compare_arrays("y", wanted, wanted * 0.99, LABELS).part == "columns 0..3"
    )


LABELS = np.broadcast_to(np.arange(6) >= 4, (8, 6)).astype(np.int32)


def test_a_large_constant_hides_nothing() -> None:
    wanted = 100 + np.random.default_rng(0).normal(size=(16, 8)) * 0.01
    found = compare_arrays("y", wanted, np.full_like(wanted, 100))
    assert found.sqnr is not None and found.sqnr > 60
    (text,) = warnings_of_outputs([found])
    assert text.startswith("all values of y: ") and "all one" in text
    assert warnings_of_outputs([compare_arrays("y", wanted, wanted.round(3))]) == ()


def test_a_constant_hides_nothing_in_columns_of_a_smaller_range() -> None:
    random = np.random.default_rng(0)
    wanted = np.concatenate(
        [random.normal(size=(16, 1, 50, 4)) * 60, 0.4 + random.random(size=(16, 1, 50, 5)) * 0.2], -1
    )
    compared = compare_arrays("y", wanted, (wanted * 2).round() / 2)
    assert compared.sqnr is not None and compared.sqnr > 30 and compared.separate
    (text,) = warnings_of_outputs([compared])
    assert text.startswith("columns 4..8 of y: ") and "0.5 apart" in text
    assert warnings_of_outputs([compare_arrays("y", wanted, (wanted * 100).round() / 100)]) == ()


def test_features_of_a_vector_are_no_parts_of_their_own() -> None:
    wanted = np.random.default_rng(0).normal(size=(16, 1, 128))
    wanted[:, :, 5] = 0.02 + wanted[:, :, 5] * 1e-3
    found = (wanted * 50).round() / 50
    assert warnings_of_outputs([compare_arrays("y", wanted, found)]) == ()
    assert compare_arrays("y", wanted[:, :, :16], found[:, :, :16]).part == "column 5"


def test_integers_that_are_all_the_most_frequent_one_are_a_warning() -> None:
    wanted = np.arange(200).reshape(2, 100) % 50 == 0
    (text,) = warnings_of_outputs([compare_arrays("y", wanted, wanted & False)])
    assert "98.0%" in text and "most frequent" in text
    assert warnings_of_outputs([compare_arrays("y", wanted, wanted)]) == ()
