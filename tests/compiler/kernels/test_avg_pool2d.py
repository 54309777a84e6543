"""avg_pool2d against LiteRT's reference kernels at 0 LSB."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.compiler.kernels.test_max_pool2d import BASE, NAMED, add_pool, pools
from tests.golden import TARGETS, ModelMaker, seeds
from tests.sampling import examples


@examples(100)
@given(st.lists(pools(), min_size=1, max_size=12), seeds(), st.sampled_from(TARGETS))
def test_any_pool(cases: list[dict[str, Any]], seed: int, target: str) -> None:
    maker = ModelMaker(np.random.default_rng(seed))
    for case in cases:
        add_pool(maker, "AVERAGE_POOL_2D", case)
    maker.check(target)


@pytest.mark.parametrize("change", NAMED.values(), ids=NAMED)
def test_named(change: dict[str, Any]) -> None:
    maker = ModelMaker(np.random.default_rng(7))
    add_pool(maker, "AVERAGE_POOL_2D", BASE | change)
    maker.check()
