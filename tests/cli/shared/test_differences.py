from __future__ import annotations

import numpy as np
import pytest

from openneutron.cli.shared.differences import Difference, compare
from openneutron.errors import OptionError


def one(a: object, b: object) -> Difference:
    (found,) = compare({"y": np.asarray(a)}, {"other": np.asarray(b)}, where="m.tflite")
    return found


def test_integers_differ_in_steps() -> None:
    assert one(np.int8([-128, 3, 5]), np.int8([127, 3, 4])) == Difference("y", 3, 2, 255.0)
    assert one(np.int8([1]), np.int8([1])).equal


def test_floats_are_equal_only_bit_for_bit() -> None:
    assert one(np.float32([0.0, np.nan]), np.float32([0.0, np.nan])).equal
    assert one(np.float32([0.0]), np.float32([-0.0])).differing == 1
    assert one(np.float32([1.0]), np.float32([1.5])).largest == 0.5
    assert one(np.float32([np.nan]), np.float32([1.0])).differing == 1


def test_empty_outputs_are_equal() -> None:
    assert one(np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32)).equal
    assert one(np.zeros(0, np.int8), np.zeros(0, np.int8)).equal


def test_outputs_of_another_model_are_refused() -> None:
    with pytest.raises(OptionError, match=r"m.tflite: output 'y' is int8 \[2\] there, int8 \[1\] here"):
        one(np.int8([1]), np.int8([1, 2]))
    with pytest.raises(OptionError, match="it has 0 outputs, the file that ran has 1"):
        compare({"y": np.zeros(1)}, {}, where="m.tflite")
