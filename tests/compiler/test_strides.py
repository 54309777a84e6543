"""Merging of copy loops: whatever is merged copies the same bytes."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from openneutron.compiler.strides import Loop, dense, is_plain, merged


def copied(loops: list[Loop]) -> dict[int, int]:
    """Output byte → input byte."""
    steps = product(*(range(loop.count) for loop in loops))
    return {
        sum(i * loop.write for i, loop in zip(at, loops, strict=True)): sum(
            i * loop.read for i, loop in zip(at, loops, strict=True)
        )
        for at in steps
    }


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_merging_changes_no_byte(shape: list[int], random: object) -> None:
    order = list(range(len(shape)))
    random.shuffle(order)  # type: ignore[attr-defined]
    reads = dense(shape)
    out = [shape[axis] for axis in order]
    loops = [Loop(n, reads[axis], write) for n, axis, write in zip(out, order, dense(out), strict=True)]
    shorter = merged(loops)
    assert len(shorter) <= len(loops)
    assert copied(shorter) == copied(loops)
    if order == sorted(order):
        assert is_plain(shorter, int(np.prod(shape)))
