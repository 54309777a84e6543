"""reduce: MEAN, SUM, REDUCE_MAX and REDUCE_MIN over any axes, at 0 LSB."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.litert.graph import DType
from tests.compiler.kernels.moving import Q, fresh, integers, reason, shapes
from tests.golden import TARGETS, ModelMaker, f32, scales, seeds, zero_points
from tests.sampling import examples

CODES = ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN")


def add_reduction(
    maker: ModelMaker, code: str, shape: list[int], axes: list[int], keep: bool, in_q: Any = Q, out_q: Any = Q,
    dtype: DType = DType.INT8,
) -> None:  # fmt: skip
    """Add the operator with the output shape that its axes give."""
    reduced = {axis % len(shape) for axis in axes}
    out = [1 if at in reduced else n for at, n in enumerate(shape) if keep or at not in reduced]
    x = maker.input(shape, dtype, *in_q)
    maker.op(code, [x, integers(maker, axes)], maker.output(out, dtype, *out_q), keep_dims=keep)


@pytest.mark.parametrize("code", CODES)
@examples(80)
@given(st.data())
def test_any_axes(code: str, data: st.DataObject) -> None:
    maker = fresh(data.draw(seeds()))
    for _ in range(5):
        shape = data.draw(shapes(1, 4, 6))
        axes = data.draw(
            st.lists(st.integers(-len(shape), len(shape) - 1), min_size=1, max_size=len(shape), unique=True)
        )
        dtype = DType.INT8 if code == "SUM" else data.draw(st.sampled_from([DType.INT8, DType.INT16]))
        in_q = (data.draw(scales()), data.draw(zero_points(dtype)))
        out_q = (f32(in_q[0] * data.draw(st.floats(0.3, 4))), data.draw(zero_points(dtype)))
        add_reduction(
            maker, code, shape, axes, data.draw(st.booleans()), in_q, out_q if code in ("MEAN", "SUM") else in_q, dtype
        )
    maker.check(data.draw(st.sampled_from(TARGETS)))


NAMED: dict[str, tuple[list[int], list[int]]] = {
    "global pool": ([1, 7, 7, 40], [1, 2]),
    "over channels": ([1, 6, 5, 33], [3]),
    "rank five, inner": ([2, 3, 2, 4, 5], [3, 4]),
    "rank five, outer and inner": ([2, 3, 2, 4, 5], [0, 4]),
    "rank five, alternating": ([2, 3, 2, 4, 5], [0, 2, 4]),
    "rank six, alternating": ([2, 3, 2, 4, 2, 3], [1, 3, 5]),
    "everything": ([2, 3, 4, 5], [0, 1, 2, 3]),
    "an axis twice": ([2, 3, 4], [1, -2]),
    "batch": ([5, 3, 3, 2], [0]),
}


@pytest.mark.parametrize(("shape", "axes"), NAMED.values(), ids=NAMED)
def test_named(shape: list[int], axes: list[int]) -> None:
    maker = fresh(5)
    for keep in (False, True):
        for code in CODES:
            add_reduction(maker, code, shape, axes, keep)
    maker.check()


def test_unsigned_mean() -> None:
    maker = fresh(6)
    add_reduction(maker, "MEAN", [1, 7, 7, 5], [1, 2], False, (0.1, 120), (0.07, 99), DType.UINT8)
    add_reduction(maker, "REDUCE_MAX", [1, 7, 7, 5], [1], False, dtype=DType.UINT8)
    maker.check()


def test_refusals() -> None:
    assert "same scale" in reason(lambda m: add_reduction(m, "REDUCE_MAX", [2, 3], [1], False, Q, (0.5, 0)))
    assert "fewer dimensions" in reason(lambda m: add_reduction(m, "MEAN", [2] * 7, [1, 3, 5], False))
    assert "axes [2]" in reason(lambda m: m.op(
        "MEAN", [m.input([2, 3], DType.INT8, *Q), integers(m, [2])], m.output([2], DType.INT8, *Q), keep_dims=False
    ))  # fmt: skip
