"""Models with several inputs and outputs, listed in another order than their operators come in.

Example:
    >>> several_ends(inputs=(1, 0), outputs=("sum", "first"))
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openneutron.litert import DType, GraphBuilder, write_model

SHAPES = ((1, 4, 4, 8), (1, 4, 4, 1))


def several_ends(inputs: Sequence[int] = (0, 1), outputs: Sequence[str] = ("first", "sum", "flat")) -> bytes:
    """first = conv(x0), then sum = first + x1, then flat = pool(sum); `outputs` may name them twice, and inputs x0, x1."""
    g = GraphBuilder()
    rng = np.random.default_rng(0)
    x = [g.tensor(f"x{at}", shape, DType.INT8, scale=0.05, zero_point=at) for at, shape in enumerate(SHAPES)]
    w = g.tensor(
        "w", (8, 3, 3, 8), DType.INT8, scale=0.01, zero_point=0, data=rng.integers(-99, 99, (8, 3, 3, 8), np.int8)
    )
    b = g.tensor("b", (8,), DType.INT32, scale=0.0005, zero_point=0, data=np.arange(8, dtype=np.int32))
    first = g.tensor("first", SHAPES[0], DType.INT8, scale=0.06, zero_point=-3)
    total = g.tensor("sum", SHAPES[0], DType.INT8, scale=0.1, zero_point=5)
    flat = g.tensor("flat", (1, 2, 2, 8), DType.INT8, scale=0.1, zero_point=5)
    g.op("CONV_2D", [x[0], w, b], [first], padding="SAME", stride_w=1, stride_h=1)
    g.op("ADD", [first, x[1]], [total])
    g.op("MAX_POOL_2D", [total], [flat], padding="VALID", stride_w=2, stride_h=2, filter_width=2, filter_height=2)
    names = {"x0": x[0], "x1": x[1], "first": first, "sum": total, "flat": flat}
    return write_model(g.finish([x[at] for at in inputs], [names[name] for name in outputs]))
