"""split: SPLIT and SPLIT_V along any axis, at 0 LSB."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from openneutron.litert.graph import DType
from tests.compiler.kernels.moving import MOVED, Q, fresh, integers, reason, shapes
from tests.golden import ModelMaker, seeds
from tests.sampling import examples


@examples(80)
@given(st.data())
def test_any_axis(data: st.DataObject) -> None:
    maker = fresh(data.draw(seeds()))
    for _ in range(3):
        shape, dtype = data.draw(shapes(1, 5, 4)), data.draw(MOVED)
        axis = data.draw(st.integers(0, len(shape) - 1))
        sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
        equal = data.draw(st.booleans())
        sizes = [sizes[0]] * len(sizes) if equal else sizes
        shape[axis] = sum(sizes)
        x = maker.input(shape, dtype, *Q)
        outputs = [maker.output([*shape[:axis], n, *shape[axis + 1 :]], dtype, *Q) for n in sizes]
        named = integers(maker, axis - len(shape) if data.draw(st.booleans()) else axis)
        if equal:
            maker.builder.op("SPLIT", [named, x], outputs, num_splits=len(sizes))
        else:
            maker.builder.op("SPLIT_V", [x, integers(maker, sizes), named], outputs, num_splits=len(sizes))
    maker.check()


def test_refusals() -> None:
    def at_run_time(maker: ModelMaker) -> None:
        axis = maker.builder.tensor("axis", (), DType.INT32)
        maker.inputs.append(axis)
        x = maker.input((4,), DType.INT8, *Q)
        maker.builder.op("SPLIT", [axis, x], [maker.output((2,), DType.INT8, *Q) for _ in range(2)], num_splits=2)

    def too_short(maker: ModelMaker) -> None:
        x = maker.input((4,), DType.INT8, *Q)
        outputs = [maker.output((1,), DType.INT8, *Q) for _ in range(2)]
        maker.builder.op("SPLIT", [integers(maker, 0), x], outputs, num_splits=2)

    assert "axis is None" in reason(at_run_time)
    assert "outputs take 2 of 4" in reason(too_short)
