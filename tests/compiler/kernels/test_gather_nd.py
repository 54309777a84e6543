"""GATHER_ND with constant coordinates, and with indices known only at run time, at 0 LSB."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.certify.prove import prove
from openneutron.convert import convert
from openneutron.errors import RuntimeFailure
from openneutron.litert.graph import DType
from openneutron.litert.write import write_model
from openneutron.options import Options
from tests.compiler.kernels.moving import MOVED, Q, fresh, reason, shapes
from tests.golden import ModelMaker, execute, seeds
from tests.sampling import examples


@examples(60)
@given(st.data())
def test_any_coordinates(data: st.DataObject) -> None:
    maker = fresh(data.draw(seeds()))
    for _ in range(4):
        shape = data.draw(shapes(1, 4))
        count = data.draw(st.integers(1, len(shape)))
        outer = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=2))
        picked = np.stack([maker.rng.integers(0, size, outer) for size in shape[:count]], -1)
        dtype, kind = data.draw(MOVED), data.draw(st.sampled_from([DType.INT32, DType.INT64]))
        x = maker.input(shape, dtype, *Q)
        if count > 1 or data.draw(st.booleans()):
            indices = maker.constant(picked, kind)
        else:
            indices = maker.builder.tensor(f"indices{x}", picked.shape, kind)
            maker.inputs.append(indices)
            maker.data.append(picked.astype(kind.numpy))
        maker.op("GATHER_ND", [x, indices], maker.output([*outer, *shape[count:]], dtype, *Q))
    maker.check()


def rows(maker: ModelMaker, picked: list[list[int]], shape: tuple[int, ...] = (3, 2)) -> None:
    indices = maker.constant(np.array(picked), DType.INT32)
    out = (len(picked), *shape[len(picked[0]) :])
    maker.op("GATHER_ND", [maker.input(shape, DType.INT8, *Q), indices], maker.output(out, DType.INT8, *Q))


def computed(maker: ModelMaker, count: int) -> None:
    indices = maker.builder.tensor("indices", (4, count), DType.INT32)
    maker.inputs.append(indices)
    x = maker.input((3, 2), DType.INT8, *Q)
    maker.op("GATHER_ND", [x, indices], maker.output((4, *(3, 2)[count:]), DType.INT8, *Q))


def test_an_index_outside_ends_the_run() -> None:
    maker = fresh(8)
    computed(maker, 1)
    model = convert(write_model(maker.model()), Options()).model
    with pytest.raises(RuntimeFailure, match="index 3, where 0 to 2 exist"):
        execute(model, [np.array([[0], [1], [3], [2]], np.int32), maker.data[0]])


def test_it_is_proved() -> None:
    maker = fresh(8)
    rows(maker, [[2, 1], [0, 0]])
    computed(maker, 1)
    source = write_model(maker.model())
    prove(convert(source, Options()).model, source)


def test_refusals() -> None:
    assert "[3, 0] of [3, 2]" in reason(lambda m: rows(m, [[0, 1], [3, 0]]))
    assert "has 2 and is computed at run time" in reason(lambda m: computed(m, 2))
