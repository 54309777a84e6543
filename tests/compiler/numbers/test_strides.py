"""Merging of copy loops: whatever is merged copies the same bytes."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from openneutron.compiler.numbers.strides import Loop, compose_loops, dense, is_plain, merge_loops


def copied(loops: list[Loop]) -> dict[int, int]:
    """Output byte → input byte."""
    steps = product(*(range(loop.count) for loop in loops))
    return {
        sum(i * loop.write for i, loop in zip(at, loops, strict=True)): sum(
            i * loop.read for i, loop in zip(at, loops, strict=True)
        )
        for at in steps
    }


def permuted(shape: list[int], random: object) -> list[Loop]:
    """The loops of a transpose by a random order."""
    order = list(range(len(shape)))
    random.shuffle(order)  # type: ignore[attr-defined]
    out = [shape[axis] for axis in order]
    return [Loop(n, dense(shape)[axis], write) for n, axis, write in zip(out, order, dense(out), strict=True)]


# Shapes of as many bytes, so that one copy can follow another.
_SHAPES = st.sampled_from([[2, 3, 4], [4, 6], [2, 2, 2, 3], [24], [3, 8], [12, 2], [2, 3, 2, 2]])


@given(_SHAPES, _SHAPES, st.booleans(), st.randoms(use_true_random=False))
def test_one_copy_for_two_moves_the_same_bytes(a: list[int], b: list[int], shorter: bool, random: object) -> None:
    first, second = permuted(a, random), permuted(b, random)
    both = compose_loops(merge_loops(first) if shorter else first, second)
    if both is not None:
        was, then = copied(first), copied(second)
        assert copied(both) == {to: was[through] for to, through in then.items()}


@given(_SHAPES, st.randoms(use_true_random=False))
def test_a_transpose_of_a_transpose_is_one(shape: list[int], random: object) -> None:
    first = permuted(shape, random)
    assert compose_loops(first, permuted([loop.count for loop in first], random)) is not None


def test_one_copy_for_two_is_refused_where_digits_carry() -> None:
    assert compose_loops([Loop(2, 3, 1), Loop(3, 1, 2)], [Loop(3, 1, 1), Loop(2, 2, 3)]) is None
    assert compose_loops([Loop(2, 3, 2), Loop(3, 1, 4)], [Loop(6, 1, 1)]) is None
    assert compose_loops([Loop(6, 1, 1)], [Loop(6, -1, 1)]) is None


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_merging_changes_no_byte(shape: list[int], random: object) -> None:
    order = list(range(len(shape)))
    random.shuffle(order)  # type: ignore[attr-defined]
    reads = dense(shape)
    out = [shape[axis] for axis in order]
    loops = [Loop(n, reads[axis], write) for n, axis, write in zip(out, order, dense(out), strict=True)]
    shorter = merge_loops(loops)
    assert len(shorter) <= len(loops)
    assert copied(shorter) == copied(loops)
    if order == sorted(order):
        assert is_plain(shorter, int(np.prod(shape)))
