"""Small INT8 models for the tests of this folder."""

from __future__ import annotations

import numpy as np

from openneutron.litert import DType, GraphBuilder, write_model


def two_outputs() -> bytes:
    """conv → (relu "first", max-pool "second"): two outputs that differ in shape."""
    rng = np.random.default_rng(7)
    g = GraphBuilder()
    x = g.tensor("x", (1, 8, 8, 3), DType.INT8, scale=0.05, zero_point=-3)
    w = g.tensor("w", (8, 3, 3, 3), DType.INT8, scale=0.01, data=rng.integers(-127, 128, (8, 3, 3, 3), np.int8))
    b = g.tensor("b", (8,), DType.INT32, scale=0.05 * 0.01, data=rng.integers(-99, 99, 8))
    y = g.tensor("y", (1, 8, 8, 8), DType.INT8, scale=0.1, zero_point=5)
    g.op("CONV_2D", [x, w, b], [y], padding="SAME", stride_w=1, stride_h=1, fused_activation_function="NONE")
    first = g.tensor("first", (1, 8, 8, 8), DType.INT8, scale=0.1, zero_point=5)
    g.op("RELU", [y], [first])
    second = g.tensor("second", (1, 4, 4, 8), DType.INT8, scale=0.1, zero_point=5)
    g.op("MAX_POOL_2D", [y], [second], padding="VALID", stride_w=2, stride_h=2, filter_width=2, filter_height=2)
    return write_model(g.finish([x], [first, second]))


def with_custom_operator() -> bytes:
    """relu, then a custom operator that no converter knows."""
    g = GraphBuilder()
    x, y, z = (g.tensor(name, (1, 4, 4, 8), DType.INT8, scale=0.1, zero_point=5) for name in "xyz")
    g.op("RELU", [x], [y])
    g.custom("Mystery", [y], [z])
    return write_model(g.finish([x], [z]))


def views(codes: tuple[str, ...]) -> bytes:
    """Operators that only rename bytes, one after another, from [1, 4, 6]."""
    g = GraphBuilder()
    x = last = g.tensor("x", (1, 4, 6), DType.INT8, scale=0.1, zero_point=5)
    for at, code in enumerate(codes):
        shape, argument = {"RESHAPE": ((4, 6), [4, 6]), "EXPAND_DIMS": ((1, 4, 6), [0])}.get(code, ((4, 6), None))
        inputs = [last]
        if argument is not None:
            inputs.append(g.tensor(f"argument{at}", (len(argument),), DType.INT32, data=argument))
        last = g.tensor(f"y{at}", shape, DType.INT8, scale=0.1, zero_point=5)
        options = {"RESHAPE": {"new_shape": [4, 6]}, "SQUEEZE": {"squeeze_dims": [0]}}.get(code, {})
        g.op(code, inputs, [last], **options)
    return write_model(g.finish([x], [last]))
