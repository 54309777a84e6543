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
