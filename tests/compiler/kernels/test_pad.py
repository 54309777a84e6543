"""pad: PAD and PADV2 of any rank, at 0 LSB."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from openneutron.litert.graph import DType
from tests.compiler.kernels.moving import MOVED, Q, add_move, check_between_neighbours, fresh, integers, reason, shapes
from tests.golden import TARGETS, ModelMaker, seeds
from tests.sampling import examples


@examples(80)
@given(st.data())
def test_any_frame(data: st.DataObject) -> None:
    maker = fresh(data.draw(seeds()))
    for _ in range(4):
        shape = data.draw(shapes(1, 5, 4))
        borders = [[data.draw(st.integers(0, 2)), data.draw(st.integers(0, 2))] for _ in shape]
        out = [size + sum(pair) for size, pair in zip(shape, borders, strict=True)]
        dtype = data.draw(MOVED)
        if data.draw(st.booleans()):
            add_move(maker, "PAD", shape, out, [borders], dtype)
            continue
        value = maker.constant(maker.values((1,), dtype), dtype, *Q)
        x = maker.input(shape, dtype, *Q)
        maker.op("PADV2", [x, integers(maker, borders), value], maker.output(out, dtype, *Q))
    maker.check(data.draw(st.sampled_from(TARGETS)))


def test_refusals() -> None:
    def other_scale(maker: ModelMaker) -> None:
        value = maker.constant(np.array([1]), DType.INT8, 0.5, 0)
        x = maker.input((2,), DType.INT8, *Q)
        maker.op("PADV2", [x, integers(maker, [[1, 1]]), value], maker.output((4,), DType.INT8, *Q))

    assert "padding value" in reason(other_scale)
    assert "paddings [-1, 1]" in reason(lambda m: add_move(m, "PAD", [4], [4], [[[-1, 1]]]))


def test_a_frame_streams_by_rows() -> None:
    assert check_between_neighbours("PAD", (1, 36, 14, 4), [[[0, 0], [1, 3], [2, 0], [0, 0]]]) <= 112
