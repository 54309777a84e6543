"""resize_nearest: RESIZE_NEAREST_NEIGHBOR in all conventions, at 0 LSB."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from openneutron.compiler.kernels.resize_nearest import demand_of, nearest
from tests.compiler.kernels.moving import MOVED, add_move, check_between_neighbours, fresh, reason
from tests.golden import TARGETS, seeds
from tests.sampling import examples

SIZES = st.tuples(st.integers(1, 9), st.integers(1, 9))


@examples(150)
@given(st.data())
def test_any_size(data: st.DataObject) -> None:
    maker = fresh(data.draw(seeds()))
    for _ in range(5):
        (h, w), (oh, ow) = data.draw(SIZES), data.draw(SIZES)
        n, c = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 5))
        add_move(
            maker, "RESIZE_NEAREST_NEIGHBOR", (n, h, w, c), (n, oh, ow, c), [[oh, ow]], data.draw(MOVED),
            align_corners=data.draw(st.booleans()), half_pixel_centers=data.draw(st.booleans()),
        )  # fmt: skip
    maker.check(data.draw(st.sampled_from(TARGETS)))


@examples(200)
@given(st.integers(1, 40), st.integers(1, 40), st.booleans(), st.booleans())
def test_demand_covers_every_row(size: int, wanted: int, align: bool, half: bool) -> None:
    rows = nearest(size, wanted, align, half)
    demand = demand_of(rows, size)
    for y, row in enumerate(rows):
        low, high = demand.rows(y, y + 1, size)
        assert low <= row < high


def test_twice_the_size_needs_one_row() -> None:
    demand = demand_of(nearest(8, 16, False, False), 8)
    assert (demand.stride, demand.divide, demand.before, demand.extent) == (1, 2, 0, 1)


def test_refusals() -> None:
    why = reason(lambda m: add_move(m, "RESIZE_NEAREST_NEIGHBOR", (4, 4, 1), (8, 8, 1), [[8, 8]]))
    assert "4-D" in why


def test_half_the_size_streams() -> None:
    assert check_between_neighbours("RESIZE_NEAREST_NEIGHBOR", (1, 16, 6, 4), [[16, 6]]) <= 80
    check_between_neighbours("RESIZE_NEAREST_NEIGHBOR", (1, 64, 24, 4), [[64, 24]])
