from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.report.html.layers import BOX_HEIGHT, BOX_WIDTH, layout

NEAR = 1e-6  # sums of floats


@st.composite
def graphs(draw: st.DrawFn) -> list[tuple[int, ...]]:
    count = draw(st.integers(0, 14))
    return [tuple(draw(st.sets(st.integers(0, box - 1), max_size=3)) if box else ()) for box in range(count)]


@given(graphs())
def test_boxes_never_overlap_and_edges_point_down(inputs: list[tuple[int, ...]]) -> None:
    found = layout(inputs)
    for a, (ax, ay) in enumerate(found.boxes):
        assert -NEAR <= ax <= found.width - BOX_WIDTH + NEAR and 0 <= ay <= found.height - BOX_HEIGHT + NEAR
        for bx, by in found.boxes[:a]:
            assert abs(ax - bx) >= BOX_WIDTH - NEAR or abs(ay - by) >= BOX_HEIGHT
    for maker, reader, _ in found.edges:
        assert found.boxes[maker][1] < found.boxes[reader][1]
    assert len(found.edges) == sum(map(len, inputs))


def test_a_chain_with_a_skip_is_straight_and_the_skip_goes_around() -> None:
    found = layout([(), (0,), (1,), (2, 0)])
    assert len({x for x, _ in found.boxes}) == 1
    skip = next(path for maker, reader, path in found.edges if (maker, reader) == (0, 3))
    assert skip.count("C") == 2


@pytest.mark.parametrize("late", [5, 9])
def test_a_box_that_reads_nothing_sits_above_its_reader(late: int) -> None:
    chain: list[tuple[int, ...]] = [(), (), *((at - 1 if at > 2 else 0,) for at in range(2, late)), (late - 1, 1)]
    found = layout(chain)
    assert found.boxes[1][1] == found.boxes[late - 1][1]
