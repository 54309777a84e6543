"""Collapsing broadcasts to four dimensions."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.compiler.numbers.broadcast import broadcast, inputs_to_repeat

CASES = {
    "rank four stays as it is": (((1, 4, 1, 2), (4, 3, 1)), (1, 4, 3, 2), ((1, 4, 1, 2), (1, 4, 3, 1))),
    "equal shapes fold into the batch": (((2, 3, 4, 5, 6),) * 2, (2, 3, 4, 5, 6), ((6, 4, 5, 6),) * 2),
    "one pattern joins": (((2, 3, 4, 5, 6), (5, 6)), (2, 3, 4, 5, 6), ((1, 1, 24, 30), (1, 1, 1, 30))),
    "ones join anything": (((2, 1, 3, 1, 4), (3, 1, 4)), (2, 1, 3, 1, 4), ((1, 1, 2, 12), (1, 1, 1, 12))),
}


@pytest.mark.parametrize(("inputs", "output", "expected"), CASES.values(), ids=CASES)
def test_shapes(
    inputs: tuple[tuple[int, ...], ...], output: tuple[int, ...], expected: tuple[tuple[int, ...], ...]
) -> None:
    found = broadcast(inputs, output)
    assert found is not None and found.inputs == expected
    assert np.broadcast_shapes(*found.inputs) == found.output
    assert int(np.prod(found.output)) == int(np.prod(output))


def test_what_does_not_fit() -> None:
    assert broadcast(((2, 1, 2, 1, 2), (2, 2, 2, 2, 2)), (2, 2, 2, 2, 2)) is None
    assert broadcast(((2, 3), (3, 3)), (3, 3)) is None
    assert broadcast(((1, 2, 3),), (2, 3)) is None


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        (((2, 3, 2), (3, 1)), ()),
        (((2, 3, 2, 4, 5), (1, 3, 1, 4, 1)), (1,)),
        (((3, 1, 4, 1), (2, 3, 2, 4, 5)), (0,)),
        (((2, 1, 2, 1, 5), (1, 3, 1, 4, 1)), (0, 1)),
        (((2, 3, 2, 4, 5), (1, 2, 1, 4, 1)), None),
        (((1, 2, 3, 2, 4, 5), (1,)), None),
    ],
    ids=str,
)
def test_what_must_be_written_out_first(inputs: tuple[tuple[int, ...], ...], expected: tuple[int, ...] | None) -> None:
    output = (2, 3, 2, 4, 5) if len(inputs[0]) > 3 or len(inputs[1]) > 3 else (2, 3, 2)
    assert inputs_to_repeat(inputs, output) == expected
