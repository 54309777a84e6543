"""softmax against LiteRT's reference kernels at 0 LSB, below the sums on which those abort."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.compiler.kernels.softmax import exponential_table
from openneutron.litert.graph import DType
from tests.golden import TARGETS, ModelMaker, refusal, scales, seeds, zero_points
from tests.sampling import examples


@st.composite
def rows(draw: st.DrawFn, wide: bool = False) -> dict[str, Any]:
    dtype = draw(st.sampled_from([DType.INT8, DType.INT8, DType.UINT8]))
    lead = draw(st.lists(st.integers(1, 4), max_size=4))
    return {
        "dtype": dtype, "shape": (*lead, draw(st.integers(1, 60))), "zero": draw(zero_points(dtype)),
        "scale": draw(scales(-24, 12) if wide else scales(-8, 0)), "beta": draw(st.floats(0.25, 4.0, width=32)),
    }  # fmt: skip


def add_softmax(maker: ModelMaker, case: dict[str, Any]) -> None:
    x = maker.input(case["shape"], case["dtype"], case["scale"], case["zero"])
    zero = 0 if case["dtype"] is DType.UINT8 else -128
    maker.op("SOFTMAX", [x], maker.output(case["shape"], case["dtype"], 1 / 256, zero), beta=case["beta"])


@examples(100)
@given(st.lists(rows(), min_size=1, max_size=12), seeds(), st.sampled_from(TARGETS))
def test_any_rows(cases: list[dict[str, Any]], seed: int, target: str) -> None:
    maker = ModelMaker(np.random.default_rng(seed))
    for case in cases:
        add_softmax(maker, case)
    maker.check(target)


@examples(35)
@given(st.lists(rows(wide=True), min_size=1, max_size=12), seeds())
def test_scales_from_flat_to_steep(cases: list[dict[str, Any]], seed: int) -> None:
    maker = ModelMaker(np.random.default_rng(seed))
    for case in cases:
        if case["beta"] * case["scale"] <= 2.0**-25:
            case["beta"] = 4.0
        add_softmax(maker, case)
    maker.check()


@pytest.mark.parametrize("depth", [1, 2, 10, 511, 1000, 3000])
def test_depth(depth: int) -> None:
    maker = ModelMaker(np.random.default_rng(depth))
    # Steep enough that a thousand random logits sum to less than 512.
    add_softmax(maker, {"dtype": DType.INT8, "shape": (2, depth), "zero": 3, "scale": 0.25, "beta": 1.0})
    maker.data[0] = maker.rng.integers(-128, 128, (2, depth)).astype(np.int8)
    maker.check()


def test_all_equal_logits() -> None:
    maker = ModelMaker(np.random.default_rng(0))
    add_softmax(maker, {"dtype": DType.INT8, "shape": (1, 511), "zero": 3, "scale": 0.25, "beta": 1.0})
    maker.data[0] = np.full((1, 511), 7, np.int8)
    maker.check()


def test_table_is_the_exponential() -> None:
    table = exponential_table(1.0, 0.03125).view("<i4").astype(np.float64) / 2.0**31
    assert np.abs(table - np.exp(-np.arange(256) / 32)).max() < 1e-6


REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "output at another scale": ({"y_scale": 1 / 128}, "scale is 0.0078125"),
    "output at another zero point": ({"y_zero": 0}, "zero point 0"),
    "another shape": ({"y_shape": (2, 4)}, "output [2, 4]"),
    "a negative beta": ({"beta": -1.0}, "it is -1"),
    "INT16 output": ({"y_dtype": DType.INT16, "y_zero": 0}, "output int16"),
}


@pytest.mark.parametrize(("change", "message"), REFUSALS.values(), ids=REFUSALS)
def test_refused(change: dict[str, Any], message: str) -> None:
    maker = ModelMaker(np.random.default_rng(1))
    x = maker.input((1, 4), DType.INT8, change.get("scale", 0.5), 0)
    y = maker.output(
        change.get("y_shape", (1, 4)), change.get("y_dtype", DType.INT8), change.get("y_scale", 1 / 256),
        change.get("y_zero", -128),
    )  # fmt: skip
    maker.op("SOFTMAX", [x], y, beta=change.get("beta", 1.0))
    assert message in refusal(maker.model())
