"""softmax16: SOFTMAX of 16 bits at 0 LSB."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.litert.graph import DType
from tests.golden import TARGETS, ModelMaker, refusal, scales, seeds
from tests.sampling import examples


@examples(25)
@given(
    st.lists(st.tuples(st.lists(st.integers(1, 5), max_size=3), st.integers(1, 40), scales(-16, -2)), min_size=1, max_size=6),
    st.floats(0.125, 3, width=32), seeds(), st.sampled_from(TARGETS),
)  # fmt: skip
def test_any_softmax(cases: list[tuple[list[int], int, float]], beta: float, seed: int, target: str) -> None:
    maker = ModelMaker(np.random.default_rng(seed))
    for outer, depth, scale in cases:
        x = maker.input((*outer, depth), DType.INT16, scale, 0)
        maker.op("SOFTMAX", [x], maker.output((*outer, depth), DType.INT16, 2.0**-15, 0), beta=beta)
    maker.check(target)


@pytest.mark.parametrize("depth", [600, 5000])
def test_long_rows(depth: int) -> None:
    maker = ModelMaker(np.random.default_rng(1))
    x = maker.input((2, depth), DType.INT16, 2.0**-10, 0)
    maker.data[-1][0] = 5
    maker.op("SOFTMAX", [x], maker.output((2, depth), DType.INT16, 2.0**-15, 0), beta=1.0)
    maker.check()


def test_another_output_scale_is_refused() -> None:
    maker = ModelMaker(np.random.default_rng(1))
    x = maker.input((2, 8), DType.INT16, 2.0**-10, 0)
    maker.op("SOFTMAX", [x], maker.output((2, 8), DType.INT16, 2.0**-8, 0), beta=1.0)
    assert "2^-15" in refusal(maker.model())
