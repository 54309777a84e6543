"""depth_space: DEPTH_TO_SPACE and SPACE_TO_DEPTH at 0 LSB."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.compiler.kernels.moving import BYTES, add_move, fresh, reason
from tests.golden import seeds
from tests.sampling import examples


@pytest.mark.parametrize("code", ["DEPTH_TO_SPACE", "SPACE_TO_DEPTH"])
@examples(60)
@given(st.data())
def test_any_block(code: str, data: st.DataObject) -> None:
    maker = fresh(data.draw(seeds()))
    for _ in range(4):
        n, h, w, c = (data.draw(st.integers(1, 4)) for _ in range(4))
        block = data.draw(st.integers(1, 3))
        deep, wide = (n, h, w, c * block * block), (n, h * block, w * block, c)
        shape, out = (deep, wide) if code == "DEPTH_TO_SPACE" else (wide, deep)
        add_move(maker, code, shape, out, dtype=data.draw(BYTES), block_size=block)
    maker.check()


def test_a_block_that_does_not_divide_is_refused() -> None:
    why = reason(lambda m: add_move(m, "DEPTH_TO_SPACE", [1, 2, 2, 6], [1, 4, 4, 1], block_size=2))
    assert "block 2" in why
