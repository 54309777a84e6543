"""slice: SLICE and STRIDED_SLICE of any rank, steps, masks, at 0 LSB."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.compiler.kernels.slice import Cut, join_cuts
from tests.compiler.kernels.moving import MOVED, add_move, check_between_neighbours, fresh, reason, shapes
from tests.golden import TARGETS, ModelMaker, seeds
from tests.sampling import examples


@examples(100)
@given(st.data())
def test_slice(data: st.DataObject) -> None:
    maker = fresh(data.draw(seeds()))
    for _ in range(6):
        shape = data.draw(shapes(1, 6))
        begin = [data.draw(st.integers(0, size - 1)) for size in shape]
        count = [data.draw(st.integers(1, size - first)) for size, first in zip(shape, begin, strict=True)]
        given_size = [-1 if data.draw(st.booleans()) else n for n in count]
        out = [size - first if n == -1 else n for size, first, n in zip(shape, begin, given_size, strict=True)]
        add_move(maker, "SLICE", shape, out, [begin, given_size], data.draw(MOVED))
    maker.check(data.draw(st.sampled_from(TARGETS)))


def add_strided(maker: ModelMaker, shape: list[int], index: tuple[object, ...], **options: int) -> None:
    """Add x[index]; integers shrink their axis."""
    begin, end, strides, masks = [], [], [], {"begin_mask": 0, "end_mask": 0, "shrink_axis_mask": 0}
    masks |= {"ellipsis_mask": 0, "new_axis_mask": 0}
    for at, item in enumerate(index):
        if isinstance(item, slice):
            begin.append(item.start or 0)
            end.append(item.stop or 0)
            strides.append(item.step or 1)
            masks["begin_mask"] |= (item.start is None) << at
            masks["end_mask"] |= (item.stop is None) << at
            continue
        kind = "ellipsis_mask" if item is Ellipsis else "new_axis_mask" if item is None else "shrink_axis_mask"
        masks[kind] |= 1 << at
        first = item if isinstance(item, int) else 0
        begin.append(first)
        end.append(first + 1)
        strides.append(1)
    out = np.empty(shape, np.int8)[index].shape
    add_move(maker, "STRIDED_SLICE", shape, out, [begin, end, strides], **masks, **options)


@st.composite
def slices(draw: st.DrawFn, size: int) -> object:
    """An index or a slice of one dimension that takes at least one element."""
    if draw(st.integers(0, 4)) == 0:
        return draw(st.integers(-size, size - 1))
    step = draw(st.sampled_from([1, 1, 2, 3, -1, -2]))
    bounds = st.none() | st.integers(-size - 1, size + 1)
    made = slice(draw(bounds), draw(bounds), step)
    return made if len(range(*made.indices(size))) else slice(None, None, step)


@examples(100)
@given(st.data())
def test_strided_slice(data: st.DataObject) -> None:
    maker = fresh(data.draw(seeds()))
    for _ in range(6):
        shape = data.draw(shapes(1, 5))
        # LiteRT needs something left of the shape.
        add_strided(maker, shape, (*(data.draw(slices(size)) for size in shape[:-1]), slice(None)))
    maker.check()


NAMED: dict[str, tuple[list[int], tuple[object, ...]]] = {
    "every second row": ([1, 9, 4, 3], (slice(None), slice(1, None, 2))),
    "upside down": ([1, 5, 4, 3], (slice(None), slice(None, None, -1))),
    "channels backwards": ([1, 3, 4, 5], (Ellipsis, slice(None, None, -1))),
    "one image": ([3, 4, 4, 2], (1,)),
    "last pixel": ([1, 4, 4, 2], (slice(None), -1, -1)),
    "new axis": ([2, 3, 4], (slice(None), None, slice(1, None))),
    "ellipsis in the middle": ([2, 3, 4, 5], (0, Ellipsis, slice(1, 4))),
    "rank six": ([2, 2, 2, 2, 2, 3], (slice(None), 1, slice(None, None, -1), slice(None), 0, slice(1, None))),
}


@pytest.mark.parametrize(("shape", "index"), NAMED.values(), ids=NAMED)
def test_named(shape: list[int], index: tuple[object, ...]) -> None:
    maker = fresh(1)
    add_strided(maker, shape, index)
    maker.check()


def test_whole_dimensions_join() -> None:
    assert join_cuts([Cut(4, 1, 1, 2), Cut(3, 0, 1, 3), Cut(5, 0, 1, 5)]) == [Cut(60, 15, 1, 30)]
    assert join_cuts([Cut(4, 0, 2, 2), Cut(3, 0, 1, 3)]) == [Cut(4, 0, 2, 2), Cut(3, 0, 1, 3)]


def test_refusals() -> None:
    assert "begin [2]" in reason(lambda m: add_move(m, "SLICE", [4], [3], [[2], [3]]))
    assert "elements for an output" in reason(
        lambda m: add_move(m, "STRIDED_SLICE", [4], [3], [[0], [4], [2]], begin_mask=0)
    )

    def at_run_time(maker: ModelMaker) -> None:
        from openneutron.litert.graph import DType

        x = maker.input((4,), DType.INT8, 0.1, 0)
        begin = maker.builder.tensor("begin", (1,), DType.INT32)
        maker.inputs.append(begin)
        size = maker.constant(np.array([2]), DType.INT32)
        maker.op("SLICE", [x, begin, size], maker.output((2,), DType.INT8, 0.1, 0))

    assert "not a constant" in reason(at_run_time)


def test_every_second_row_streams() -> None:
    bounds = [[0, 1, 0, 0], [0, 31, 0, 0], [1, 2, 1, 1]]
    assert check_between_neighbours("STRIDED_SLICE", (1, 15, 12, 4), bounds, begin_mask=13, end_mask=13) <= 96
