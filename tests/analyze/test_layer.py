from __future__ import annotations

import math

import numpy as np
import pytest

from openneutron.analyze.layer import FAR, compare_layer


def test_differences_are_counted_by_lsb_and_far_ones_share_a_bar() -> None:
    found = compare_layer(np.int8([0, 1, -2, 100, 127]), np.int8([0, 0, 0, 0, -128]), 0)
    assert found["histogram"] == {0: 1, 1: 1, -2: 1, FAR: 2}
    assert (found["elements"], found["differing"], found["largest"]) == (5, 4, 255.0)


def test_sqnr_is_that_of_the_values_without_their_zero_point() -> None:
    found = compare_layer(np.int8([11, 10]), np.int8([12, 10]), 10)
    assert found["sqnr"] == pytest.approx(10 * math.log10(4 / 1))
    assert compare_layer(np.int8([1]), np.int8([1]), 0)["sqnr"] == math.inf
    assert compare_layer(np.int8([5]), np.int8([4]), 4)["sqnr"] == -math.inf


def test_floats_have_no_histogram() -> None:
    found = compare_layer(np.float32([1.5]), np.float32([1.0]), 0)
    assert (found["largest"], found["histogram"]) == (0.5, {})
