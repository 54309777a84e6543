"""pack: PACK and UNPACK along any axis, at 0 LSB."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from openneutron.litert.graph import DType
from tests.compiler.kernels.moving import MOVED, Q, fresh, reason, shapes
from tests.golden import ModelMaker, seeds
from tests.sampling import examples


@examples(80)
@given(st.data())
def test_both_directions(data: st.DataObject) -> None:
    maker = fresh(data.draw(seeds()))
    for _ in range(3):
        shape, count, dtype = data.draw(shapes(1, 4, 4)), data.draw(st.integers(1, 4)), data.draw(MOVED)
        axis = data.draw(st.integers(0, len(shape)))
        whole = [*shape[:axis], count, *shape[axis:]]
        parts = [maker.input(shape, dtype, *Q) for _ in range(count)]
        maker.op("PACK", parts, maker.output(whole, dtype, *Q), values_count=count, axis=axis)
        x = maker.input(whole, dtype, *Q)
        outputs = [maker.output(shape, dtype, *Q) for _ in range(count)]
        maker.builder.op("UNPACK", [x], outputs, num=count, axis=axis)
    maker.check()


def test_refusals() -> None:
    def packed(maker: ModelMaker) -> None:
        parts = [maker.input((2,), DType.INT8, 0.1, 0), maker.input((2,), DType.INT8, 0.2, 0)]
        maker.op("PACK", parts, maker.output((2, 2), DType.INT8, 0.1, 0), values_count=2, axis=0)

    def unpacked(maker: ModelMaker) -> None:
        x = maker.input((2, 2), DType.INT8, 0.1, 0)
        maker.builder.op("UNPACK", [x], [maker.output((2,), DType.INT8, 0.2, 0) for _ in range(2)], num=2, axis=0)

    assert "same scale" in reason(packed)
    assert "other parameters" in reason(unpacked)
