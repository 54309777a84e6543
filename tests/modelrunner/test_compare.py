from __future__ import annotations

import numpy as np
import pytest

from openneutron.errors import BoardError
from openneutron.modelrunner.compare import Comparison, compare_outputs


def test_the_worst_value_and_the_first_byte_are_named() -> None:
    a = np.int16([[1, 2, 3], [4, 5, 6]])
    b = np.int16([[1, 3, 3], [4, 5, -6]])
    (found,) = compare_outputs({"y": a}, {"z": b}, where="port")
    assert found == Comparison("y", 6, 2, 12.0, (1, 2), 6.0, -6.0, 2)
    assert compare_outputs({"y": a}, {"y": a}, where="port")[0].equal


def test_floats_are_compared_by_their_bits() -> None:
    a = np.float32([0.0, np.nan, 2.0, 1.0])
    b = np.float32([-0.0, np.nan, np.nan, 1.0])
    (found,) = compare_outputs({"y": a}, {"y": b}, where="port")
    assert (found.differing, found.at, found.worst) == (2, (2,), np.inf)


@pytest.mark.parametrize(
    ("expected", "message"),
    [({}, "has 1 outputs, the reference 0"), ({"y": np.int8([1])}, "is int16"), ({"y": np.int16([1, 2])}, "is int16")],
)
def test_other_outputs_are_refused(expected: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(BoardError, match=message):
        compare_outputs({"y": np.int16([1])}, expected, where="port")
