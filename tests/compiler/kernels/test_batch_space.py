"""batch_space: SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND with padding and crops, at 0 LSB."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.compiler.kernels.moving import MOVED, add_move, fresh, reason
from tests.golden import ModelMaker, seeds
from tests.sampling import examples


@st.composite
def blocks(draw: st.DrawFn) -> tuple[list[int], list[int], list[list[int]], list[int]]:
    """(unblocked shape, blocks, borders, blocked shape): borders count outside the unblocked shape."""
    spatial = draw(st.integers(1, 2))
    n, c = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    sizes, block, borders = [], [], []
    for _ in range(spatial):
        block.append(draw(st.integers(1, 3)))
        total = block[-1] * draw(st.integers(1, 4))
        before = draw(st.integers(0, (total - 1) // 2))
        after = draw(st.integers(0, (total - 1) // 2))
        borders.append([before, after])
        sizes.append(total - before - after)
    count = 1
    for b in block:
        count *= b
    blocked = [(s + sum(p)) // b for s, p, b in zip(sizes, borders, block, strict=True)]
    return [n, *sizes, c], block, borders, [n * count, *blocked, c]


@examples(80)
@given(st.data())
def test_both_directions(data: st.DataObject) -> None:
    maker = fresh(data.draw(seeds()))
    for _ in range(3):
        wide, block, borders, blocked = data.draw(blocks())
        add_move(maker, "SPACE_TO_BATCH_ND", wide, blocked, [block, borders], data.draw(MOVED))
        wide, block, borders, blocked = data.draw(blocks())
        add_move(maker, "BATCH_TO_SPACE_ND", blocked, wide, [block, borders], data.draw(MOVED))
    maker.check()


def test_refusals() -> None:
    def odd(maker: ModelMaker) -> None:
        add_move(maker, "SPACE_TO_BATCH_ND", [1, 3, 4, 1], [4, 1, 2, 1], [[2, 2], [[0, 0], [0, 0]]])

    assert "block [2, 2]" in reason(odd)
