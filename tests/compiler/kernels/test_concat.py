"""concat: CONCATENATION along any axis, and UINT8 parts of other parameters, at 0 LSB."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from openneutron.litert.graph import DType
from tests.compiler.kernels.moving import MOVED, Q, fresh, reason, shapes
from tests.golden import TARGETS, ModelMaker, scales, seeds, zero_points
from tests.sampling import examples


@examples(100)
@given(st.data())
def test_any_axis(data: st.DataObject) -> None:
    maker = fresh(data.draw(seeds()))
    for _ in range(4):
        shape, dtype = data.draw(shapes(1, 6, 4)), data.draw(MOVED)
        q = (Q[0], 0) if dtype is DType.INT16 else Q
        axis = data.draw(st.integers(0, len(shape) - 1))
        inputs, total = [], 0
        for _ in range(data.draw(st.integers(1, 4))):
            part = list(shape)
            part[axis] = data.draw(st.integers(1, 4))
            total += part[axis]
            if data.draw(st.integers(0, 5)) == 0:
                inputs.append(maker.constant(maker.values(part, dtype), dtype, *q))
            else:
                inputs.append(maker.input(part, dtype, *q))
        out = [total if at == axis else size for at, size in enumerate(shape)]
        named = axis - len(shape) if data.draw(st.booleans()) else axis
        maker.op("CONCATENATION", inputs, maker.output(out, dtype, *q), axis=named)
    maker.check(data.draw(st.sampled_from(TARGETS)))


@examples(20)
@given(st.data())
def test_unsigned_parts_are_requantized(data: st.DataObject) -> None:
    maker = fresh()
    unsigned = zero_points(DType.UINT8)
    inputs = []
    for _ in range(4):
        inputs.append(maker.input((1, 16, 16, 1), DType.UINT8, data.draw(scales()), data.draw(unsigned)))
        maker.data[-1] = np.arange(256, dtype=np.uint8).reshape(1, 16, 16, 1)
    y = maker.output((1, 16, 16, 4), DType.UINT8, data.draw(scales()), data.draw(unsigned))
    maker.op("CONCATENATION", inputs, y, axis=3)
    maker.check()


def test_one_tensor_twice_and_streaming() -> None:
    maker = fresh(4)
    x = maker.input((1, 16, 8, 3), DType.INT8, 0.1, 0)
    t = maker.builder.tensor("t", (1, 16, 8, 3), DType.INT8, 0.1, 0)
    maker.op("NEG", [x], t)
    both = maker.builder.tensor("both", (1, 16, 8, 9), DType.INT8, 0.1, 0)
    maker.op("CONCATENATION", [t, x, t], both, axis=3)
    maker.op("NEG", [both], maker.output((1, 16, 8, 9), DType.INT8, 0.1, 0))
    maker.check()


def concatenated(maker: ModelMaker, *, scale: float = Q[0], **options: object) -> None:
    inputs = [maker.input((1, 2), DType.INT8, *Q), maker.input((1, 2), DType.INT8, scale, Q[1])]
    maker.op("CONCATENATION", inputs, maker.output((1, 4), DType.INT8, *Q), **({"axis": 1} | options))


def test_refusals() -> None:
    assert "insert a QUANTIZE" in reason(lambda m: concatenated(m, scale=0.7))
    assert "fused activation" in reason(lambda m: concatenated(m, fused_activation_function="RELU"))
    assert "but the axis" in reason(lambda m: concatenated(m, axis=0))
