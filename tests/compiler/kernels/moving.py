"""Shared by the tests of operators that move values: shapes, constants of shape arguments, one-operator models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from openneutron.litert.graph import DType
from tests.golden import ModelMaker, refusal

Q = (0.05, 3)  # scale and zero point of every tensor that is only moved
IMAGE = (1, 32, 12, 4)  # 1,536 bytes
BYTES = st.sampled_from([DType.INT8, DType.INT8, DType.UINT8])
MOVED = st.sampled_from([DType.INT8, DType.INT8, DType.UINT8, DType.INT16])


def shapes(low: int = 1, high: int = 5, most: int = 5) -> st.SearchStrategy[list[int]]:
    """Shapes of rank `low` to `high`."""
    return st.lists(st.integers(1, most), min_size=low, max_size=high)


def integers(maker: ModelMaker, values: Any) -> int:
    """A constant INT32 tensor."""
    return maker.constant(np.asarray(values, np.int32), DType.INT32)


def add_move(
    maker: ModelMaker, code: str, shape: Sequence[int], out: Sequence[int], arguments: Sequence[Any] = (),
    dtype: DType = DType.INT8, **options: Any,
) -> None:  # fmt: skip
    """Add an operator with one moved input, constant arguments behind it and one output."""
    q = (Q[0], 0) if dtype is DType.INT16 else Q
    x = maker.input(shape, dtype, *q)
    inputs = [x, *(integers(maker, argument) for argument in arguments)]
    maker.op(code, inputs, maker.output(out, dtype, *q), **options)


def fresh(seed: int = 0) -> ModelMaker:
    """An empty model with its own random data."""
    return ModelMaker(np.random.default_rng(seed))


def reason(build: Callable[[ModelMaker], None]) -> str:
    """Why the one operator that `build` adds is refused."""
    maker = fresh()
    build(maker)
    return refusal(maker.model())


def check_streamed(maker: ModelMaker) -> int:
    """Check under the smallest scratch budget that can be compiled, where rows stream through rings; returns it."""
    from openneutron.convert import convert
    from openneutron.errors import UnsupportedError
    from openneutron.litert.write import write_model
    from openneutron.options import Options

    model = write_model(maker.model())
    border = sum(maker.builder.graph.tensors[t].nbytes for t in (*maker.inputs, *maker.outputs))
    low, high = 0, 1 << 16
    while high - low > 16:
        middle = (low + high) // 2
        try:
            convert(model, Options(fit_bytes=border + middle))
        except UnsupportedError:
            low = middle
        else:
            high = middle
    maker.check(fit_bytes=border + high)
    return high


def check_between_neighbours(code: str, out: Sequence[int], arguments: Sequence[Any], **options: Any) -> int:
    """NEG → the operator → NEG on an image of 32 rows, streamed; returns the scratch bytes that sufficed."""
    maker = fresh(2)
    x = maker.input(IMAGE, DType.INT8, 0.1, 0)
    before, after = (
        maker.builder.tensor(name, shape, DType.INT8, 0.1, 0) for name, shape in (("a", IMAGE), ("b", out))
    )
    maker.op("NEG", [x], before)
    maker.op(code, [before, *(integers(maker, argument) for argument in arguments)], after, **options)
    maker.op("NEG", [after], maker.output(out, DType.INT8, 0.1, 0))
    return check_streamed(maker)
