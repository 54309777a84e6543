"""Pieces, channels and columns of an output."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.run.output_parts import axis_parts, join_parts


def test_neighbours_that_are_lost_are_one_part() -> None:
    signal = np.tile([100.0, 100.0, 1.0, 1.0, 100.0], (3, 1))
    assert [part.name for part in axis_parts(signal, np.ones((3, 5)), 6.0)] == ["columns 2..3"]
    assert [part.name for part in axis_parts(signal * 100, np.ones((3, 5)), 6.0)] == ["column 2"]


@pytest.mark.parametrize(("samples", "names"), [(4, []), (16, ["column 7"])])
def test_a_long_axis_is_examined_if_each_index_has_enough_values(samples: int, names: list[str]) -> None:
    signal = np.ones((1, 1000))
    signal[0, 7] = 1e-3
    assert [part.name for part in axis_parts(signal, signal * 0 + 1e-2, 6.0, samples)] == names


def test_pieces_are_named_by_the_axis_that_they_divide() -> None:
    labels = np.zeros((2, 4, 3), np.int32)
    labels[:, 2:] = 1
    assert [part.name for part in join_parts(labels, labels.shape)] == ["channels 0..1", "channels 2..3"]
    labels[0, 0, 0] = 2
    assert next(part.name for part in join_parts(labels, labels.shape) if part.where.sum() == 1) == "1 elements"
