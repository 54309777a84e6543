"""Spans against a list of bytes that does the same slowly."""

from __future__ import annotations

import random

import pytest

from openneutron.compiler.back.spans import Spans
from openneutron.errors import InternalError

SIZE = 40


@pytest.mark.parametrize("seed", range(10))
def test_it_knows_every_byte(seed: int) -> None:
    rng = random.Random(seed)
    spans, known = Spans(SIZE), [None] * SIZE  # type: ignore[var-annotated]
    for _ in range(60):
        at, owner = rng.randrange(SIZE), rng.randrange(3)
        length = rng.randint(0, SIZE - at)
        position = rng.choice([0, at, rng.randrange(SIZE)])
        if rng.random() < 0.6:
            spans.put(at, length, owner, position)
            known[at : at + length] = [(owner, position + one) for one in range(length)]  # type: ignore[list-item]
        wanted = [(owner, position + one) for one in range(length)]
        assert spans.holds(at, length, owner, position) == (known[at : at + length] == wanted)
        found = {
            start + one: (holder, place + one)
            for start, count, holder, place in spans.runs(at, length)
            for one in range(count)
        }
        assert found == {one: known[one] for one in range(at, at + length) if known[one] is not None}


def test_rows_written_one_after_the_other_are_one_interval() -> None:
    spans = Spans(96)
    for row in range(6):
        spans.put(16 * row, 16, owner=3, position=16 * row)
    assert spans.runs(0, 96) == [(0, 96, 3, 0)]


@pytest.mark.parametrize(("at", "length"), [(-1, 4), (38, 3), (41, 0)])
def test_bytes_outside_are_refused(at: int, length: int) -> None:
    with pytest.raises(InternalError, match="outside a region of 40"):
        Spans(SIZE).put(at, length, 0, 0)
