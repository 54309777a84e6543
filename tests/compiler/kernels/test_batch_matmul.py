"""batch_matmul against LiteRT's reference kernels at 0 LSB."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.litert.graph import DType
from tests.golden import TARGETS, ModelMaker, discriminating, refusal, scales, seeds, spread, zero_points
from tests.sampling import examples


@st.composite
def products(draw: st.DrawFn, wide: bool = False) -> dict[str, Any]:
    """Batches of rank 0 to 3 that broadcast on either side."""
    size = st.integers(1, 3)
    batch = draw(st.lists(size, max_size=3))
    left = [1 if draw(st.booleans()) and draw(st.booleans()) else n for n in batch]
    right = [1 if draw(st.booleans()) and draw(st.booleans()) else n for n in batch]
    shorten = draw(st.integers(0, len(batch))) if draw(st.booleans()) else 0
    if draw(st.booleans()):
        left = left[shorten:]
    else:
        right = right[shorten:]
    zero = zero_points(DType.INT8)
    return {
        "left": tuple(left), "right": tuple(right), "rows": draw(st.integers(1, 9)), "depth": draw(st.integers(1, 20)),
        "columns": draw(st.integers(1, 9)), "adj_x": draw(st.booleans()), "adj_y": draw(st.booleans()),
        "constant": draw(st.booleans()), "scales": (draw(scales()), draw(scales())),
        "zeros": (draw(zero), draw(zero), draw(zero)),
        "gain": 2.0 ** draw(st.floats(-24, 10) if wide else st.floats(-2, 2)),
    }  # fmt: skip


def add_product(maker: ModelMaker, case: dict[str, Any]) -> None:
    rows, depth, columns = case["rows"], case["depth"], case["columns"]
    left = (*case["left"], *((depth, rows) if case["adj_x"] else (rows, depth)))
    right = (*case["right"], *((columns, depth) if case["adj_y"] else (depth, columns)))
    dtype = case.get("dtype", DType.INT8)
    a = maker.input(left, dtype, case["scales"][0], case["zeros"][0])
    if case["constant"]:
        b = maker.constant(maker.values(right, dtype), dtype, case["scales"][1], case["zeros"][1])
    else:
        b = maker.input(right, dtype, case["scales"][1], case["zeros"][1])
    batch = np.broadcast_shapes(case["left"], case["right"])
    scale = spread(*case["scales"], depth, case["gain"] * (2 if dtype is DType.INT8 else 512))
    y = maker.output((*batch, rows, columns), dtype, scale, case["zeros"][2])
    maker.op("BATCH_MATMUL", [a, b], y, adj_x=case["adj_x"], adj_y=case["adj_y"])


@examples(15)
@given(st.lists(products() | products(wide=True), min_size=1, max_size=12), seeds(), st.sampled_from(TARGETS))
def test_any_product_of_sixteen_bits(cases: list[dict[str, Any]], seed: int, target: str) -> None:
    maker = ModelMaker(np.random.default_rng(seed))
    for case in cases:
        add_product(maker, case | {"dtype": DType.INT16, "zeros": (0, 0, 0), "gain": max(case["gain"], 2.0**-20)})
    maker.check(target)


@examples(100)
@given(st.lists(products(), min_size=1, max_size=12), seeds(), st.sampled_from(TARGETS))
def test_any_product(cases: list[dict[str, Any]], seed: int, target: str) -> None:
    maker = ModelMaker(np.random.default_rng(seed))
    for case in cases:
        add_product(maker, case)
    maker.check(target)


@examples(35)
@given(st.lists(products(wide=True), min_size=1, max_size=12), seeds())
def test_scales_far_from_the_data(cases: list[dict[str, Any]], seed: int) -> None:
    maker = ModelMaker(np.random.default_rng(seed))
    for case in cases:
        add_product(maker, case)
    maker.check()


BASE: dict[str, Any] = {
    "left": (2, 3), "right": (2, 3), "rows": 4, "depth": 16, "columns": 5, "adj_x": False, "adj_y": False,
    "constant": False, "scales": (0.05, 0.02), "zeros": (-7, 3, 1), "gain": 1.0,
}  # fmt: skip

NAMED: dict[str, dict[str, Any]] = {
    "attention scores": {"adj_y": True},
    "attention values": {},
    "one right matrix for all": {"right": ()},
    "batches crossed": {"left": (2, 1, 3), "right": (1, 4, 1)},
    "plain matrices": {"left": (), "right": ()},
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("change", NAMED.values(), ids=NAMED)
def test_named(change: dict[str, Any], target: str) -> None:
    maker = ModelMaker(np.random.default_rng(7))
    add_product(maker, BASE | change)
    maker.check(target)


def test_factor_is_rounded_as_the_reference_rounds_it() -> None:
    maker = ModelMaker(np.random.default_rng(5))
    for _ in range(4):
        left_scale, right_scale, y_scale, accumulators = discriminating(maker.rng, 18)
        depth = int(np.abs(accumulators).max()) // (127 * 127) + 3
        # The right column is 127 throughout but for a final 1, so any sum is 127s, a rest of 127s, and ones.
        right = np.full((depth, 1), 127)
        right[-1] = 1
        left = np.zeros((len(accumulators), depth), np.int64)
        for row, wanted in zip(left, accumulators, strict=True):
            tens, ones = divmod(abs(int(wanted)), 127)
            full, rest = divmod(tens, 127)
            row[:full], row[full], row[-1] = 127, rest, ones
            row *= 1 if wanted >= 0 else -1
        x = maker.input(left.shape, DType.INT8, left_scale, 0)
        maker.data[-1] = left.astype(np.int8)
        w = maker.constant(right, DType.INT8, right_scale, 0)
        y = maker.output((len(left), 1), DType.INT8, y_scale, 0)
        maker.op("BATCH_MATMUL", [x, w], y, adj_x=False, adj_y=False)
    maker.check()


REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "inner sizes that differ": ({"right": (5, 4)}, "inputs [3, 4] and [5, 4]"),
    "a vector": ({"right": (4,)}, "inputs [3, 4] and [4]"),
    "another output": ({"y": (3, 6)}, "output [3, 6]"),
    "UINT8": ({"dtype": DType.UINT8}, "is uint8"),
    "per-channel right side": ({"scale": [0.5] * 5, "axis": 1}, "quantized per channel"),
}


@pytest.mark.parametrize(("change", "message"), REFUSALS.values(), ids=REFUSALS)
def test_refused(change: dict[str, Any], message: str) -> None:
    maker = ModelMaker(np.random.default_rng(1))
    dtype = change.get("dtype", DType.INT8)
    right = change.get("right", (4, 5))
    a = maker.input((3, 4), dtype, 0.5, 0)
    b = maker.constant(np.ones(right), dtype, change.get("scale", 0.5), 0, change.get("axis", 0))
    maker.op("BATCH_MATMUL", [a, b], maker.output(change.get("y", (3, 5)), dtype, 1.0, 0), adj_x=False, adj_y=False)
    assert message in refusal(maker.model())
