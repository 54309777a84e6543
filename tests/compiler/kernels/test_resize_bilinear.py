"""resize_bilinear: RESIZE_BILINEAR in all conventions, at 0 LSB."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from openneutron.compiler.kernels.resize_bilinear import demand_of, demand_of_rows, real_rows, real_scale_of, scale_of
from openneutron.litert.graph import DType
from tests.compiler.kernels.moving import add_move, check_between_neighbours, fresh, reason
from tests.golden import TARGETS, seeds
from tests.sampling import examples

# Ratios stay below those at which the reference reads out of bounds (docs/numerics.md, Resize).
SIZES = st.tuples(st.integers(1, 12), st.integers(1, 12))
CONVENTIONS = st.sampled_from([(False, False), (True, False), (False, True)])


@examples(150)
@given(st.data())
def test_any_size(data: st.DataObject) -> None:
    maker = fresh(data.draw(seeds()))
    for _ in range(5):
        (h, w), (oh, ow) = data.draw(SIZES), data.draw(SIZES)
        n, c = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 5))
        align, half = data.draw(CONVENTIONS)
        add_move(
            maker, "RESIZE_BILINEAR", (n, h, w, c), (n, oh, ow, c), [[oh, ow]],
            data.draw(st.sampled_from([DType.INT8, DType.INT16])), align_corners=align, half_pixel_centers=half,
        )  # fmt: skip
    maker.check(data.draw(st.sampled_from(TARGETS)))


@examples(60)
@given(st.data())
def test_unsigned_in_float(data: st.DataObject) -> None:
    maker = fresh(data.draw(seeds()))
    for _ in range(5):
        (h, w), (oh, ow) = data.draw(SIZES), data.draw(SIZES)
        align, half = data.draw(CONVENTIONS)
        add_move(
            maker, "RESIZE_BILINEAR", (1, h, w, 3), (1, oh, ow, 3), [[oh, ow]], dtype=DType.UINT8,
            align_corners=align, half_pixel_centers=half,
        )  # fmt: skip
    maker.check(data.draw(st.sampled_from(TARGETS)))


@examples(100)
@given(st.integers(1, 300), st.integers(1, 300), CONVENTIONS)
def test_real_demand_covers_both_rows(size: int, wanted: int, convention: tuple[bool, bool]) -> None:
    rows = real_rows(size, wanted, real_scale_of(size, wanted, convention[0]), convention[1])
    demand = demand_of_rows(size, rows)
    for y, pair in enumerate(rows):
        low, high = demand.rows(y, y + 1, size)
        assert low <= min(pair) and max(pair) < high


@examples(200)
@given(st.integers(1, 40), st.integers(1, 40), CONVENTIONS)
def test_demand_covers_both_rows(size: int, wanted: int, convention: tuple[bool, bool]) -> None:
    align, half = convention
    scale = scale_of(size, wanted, align)
    demand = demand_of(size, wanted, scale, half)
    for y in range(wanted):
        position = y * scale + (scale // 2 - 512 if half else 0)
        low, high = demand.rows(y, y + 1, size)
        for row in (max(position, 0) // 1024, -(-max(position, 0) // 1024)):
            assert low <= min(row, size - 1) < high


def test_refusals() -> None:
    def both(m: object) -> None:
        add_move(
            m, "RESIZE_BILINEAR", (1, 4, 4, 1), (1, 8, 8, 1), [[8, 8]],  # type: ignore[arg-type]
            align_corners=True, half_pixel_centers=True,
        )  # fmt: skip

    assert "exclude each other" in reason(both)


def test_half_the_size_streams() -> None:
    assert check_between_neighbours("RESIZE_BILINEAR", (1, 16, 6, 4), [[16, 6]], half_pixel_centers=True) <= 128
    check_between_neighbours("RESIZE_BILINEAR", (1, 64, 24, 4), [[64, 24]], half_pixel_centers=True)
