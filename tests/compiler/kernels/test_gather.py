"""gather: GATHER with constant and run-time indices, at 0 LSB; indices can never lead a read astray."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.convert import convert
from openneutron.errors import RuntimeFailure
from openneutron.litert.graph import DType
from openneutron.litert.write import write_model
from openneutron.options import Options
from tests.compiler.kernels.moving import MOVED, Q, fresh, reason, shapes
from tests.golden import ModelMaker, execute, seeds
from tests.sampling import examples


@examples(100)
@given(st.data())
def test_any_axis(data: st.DataObject) -> None:
    maker = fresh(data.draw(seeds()))
    for _ in range(4):
        shape = data.draw(shapes(1, 4))
        axis = data.draw(st.integers(0, len(shape) - 1))
        batch = data.draw(st.integers(0, axis))
        inner = data.draw(st.lists(st.integers(1, 4), min_size=0 if batch else 1, max_size=2))
        index_shape = [*shape[:batch], *inner]
        picked = maker.rng.integers(0, shape[axis], index_shape)
        dtype, kind = data.draw(MOVED), data.draw(st.sampled_from([DType.INT32, DType.INT64]))
        x = maker.input(shape, dtype, *Q)
        if data.draw(st.booleans()):
            indices = maker.constant(picked, kind)
        else:
            indices = maker.builder.tensor(f"indices{x}", index_shape, kind)
            maker.inputs.append(indices)
            maker.data.append(picked.astype(kind.numpy))
        out = [*shape[:axis], *inner, *shape[axis + 1 :]]
        maker.op("GATHER", [x, indices], maker.output(out, dtype, *Q), axis=axis, batch_dims=batch)
    maker.check()


def test_an_embedding_table() -> None:
    maker = fresh(8)
    table = maker.constant(maker.values((50, 8), DType.INT8), DType.INT8, *Q)
    tokens = maker.builder.tensor("tokens", (1, 6), DType.INT32)
    maker.inputs.append(tokens)
    maker.data.append(np.array([[0, 49, 3, 3, 7, 20]], np.int32))
    maker.op("GATHER", [table, tokens], maker.output((1, 6, 8), DType.INT8, *Q), axis=0)
    maker.check()


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16])
def test_rows_of_a_table_by_ids(dtype: DType, constant: bool) -> None:
    maker = fresh(8)
    table = maker.constant(maker.values((50, 2, 4), dtype), dtype, 0.1, 0)
    picked = np.array([0, 49, 3, 3, 7], np.int32)
    if constant:
        ids = maker.constant(picked, DType.INT32)
    else:
        ids = maker.builder.tensor("ids", (5,), DType.INT32)
        maker.inputs.append(ids)
        maker.data.append(picked)
    maker.op("EMBEDDING_LOOKUP", [ids, table], maker.output((5, 2, 4), dtype, 0.1, 0))
    maker.check()


def test_an_id_outside_the_table_is_refused() -> None:
    def build(maker: ModelMaker) -> None:
        table = maker.constant(maker.values((5, 4), DType.INT8), DType.INT8, *Q)
        ids = maker.constant(np.array([1, 5], np.int32), DType.INT32)
        maker.op("EMBEDDING_LOOKUP", [ids, table], maker.output((2, 4), DType.INT8, *Q))

    assert "id 5 of 5" in reason(build)


@pytest.mark.parametrize("wild", [-1, 3, 2**31 - 1, -(2**31)])
def test_an_index_outside_ends_the_run(wild: int) -> None:
    maker = fresh(8)
    x = maker.input((3, 2), DType.INT8, *Q)
    indices = maker.builder.tensor("indices", (4,), DType.INT32)
    maker.inputs.append(indices)
    maker.op("GATHER", [x, indices], maker.output((4, 2), DType.INT8, *Q), axis=0)
    model = convert(write_model(maker.model()), Options()).model
    with pytest.raises(RuntimeFailure, match=f"index {wild}, where 0 to 2 exist"):
        execute(model, [maker.data[0], np.array([0, 1, wild, 2], np.int32)])
    (got,) = execute(model, [maker.data[0], np.array([2, 0, 0, 1], np.int32)])
    assert np.array_equal(got, maker.data[0][[2, 0, 0, 1]])


def test_refusals() -> None:
    def gathered(maker: ModelMaker, index: int, **options: int) -> None:
        x = maker.input((3, 2), DType.INT8, *Q)
        maker.op("GATHER", [x, maker.constant([index], DType.INT32)], maker.output((1, 2), DType.INT8, *Q), **options)

    assert "index 3 of 3" in reason(lambda m: gathered(m, 3, axis=0))
    assert "axis 1" in reason(lambda m: gathered(m, 0, axis=1))
