"""Tiny models that keep something from run to run, built by hand."""

from __future__ import annotations

import numpy as np

from openneutron.litert import DType, GraphBuilder
from openneutron.litert.write import write_model

HISTORY = "history"


def streaming_convnet(*, first: int = -5, initial: bool = True, shape: tuple[int, ...] = (1, 2, 1, 4)) -> bytes:
    """A convolution over the last three frames; a variable keeps the two before this one. Its first contents are `first`."""
    rng = np.random.default_rng(3)
    g = GraphBuilder()
    x = g.tensor("frame", (1, 1, 1, 4), DType.INT8, scale=0.1, zero_point=-5)
    if initial:
        handle = g.variable(HISTORY, np.full(shape, first), DType.INT8)
    else:
        handle = g.tensor("handle", (), DType.RESOURCE)
        g.op("VAR_HANDLE", [], [handle], container="", shared_name=HISTORY)
    before = g.tensor("before", (1, 2, 1, 4), DType.INT8, scale=0.1, zero_point=-5)
    g.op("READ_VARIABLE", [handle], [before])
    window = g.tensor("window", (1, 3, 1, 4), DType.INT8, scale=0.1, zero_point=-5)
    g.op("CONCATENATION", [before, x], [window], axis=1)
    begin, end, strides = (
        g.tensor(name, (4,), DType.INT32, data=data)
        for name, data in (("begin", (0, 1, 0, 0)), ("end", (1, 3, 1, 4)), ("strides", (1, 1, 1, 1)))
    )
    after = g.tensor("after", (1, 2, 1, 4), DType.INT8, scale=0.1, zero_point=-5)
    g.op("STRIDED_SLICE", [window, begin, end, strides], [after])
    g.op("ASSIGN_VARIABLE", [handle, after], [])
    scales = rng.uniform(0.002, 0.01, 6).astype(np.float32)
    filters = g.tensor("filters", (6, 3, 1, 4), DType.INT8, scales, data=rng.integers(-127, 128, (6, 3, 1, 4)))
    bias = g.tensor("bias", (6,), DType.INT32, scales * np.float32(0.1), data=rng.integers(-400, 400, 6))
    y = g.tensor("out", (1, 1, 1, 6), DType.INT8, scale=0.05, zero_point=7)
    g.op("CONV_2D", [window, filters, bias], [y], padding="VALID", stride_w=1, stride_h=1)
    return write_model(g.finish([x], [y]))


def running_sum(*, first: tuple[int, ...] = (0, 0, 0, 0), through_cpu: bool = False) -> bytes:
    """total ← total + x, and the sum is returned; with `through_cpu` a float operator lies between reading and assigning."""
    g = GraphBuilder()
    x = g.tensor("x", (1, 4), DType.INT8, scale=0.1, zero_point=0)
    handle = g.variable("total", np.reshape(first, (1, 4)), DType.INT8)
    before = g.tensor("before", (1, 4), DType.INT8, scale=0.2, zero_point=0)
    g.op("READ_VARIABLE", [handle], [before])
    total = g.tensor("total", (1, 4), DType.INT8, scale=0.2, zero_point=0)
    g.op("ADD", [before, x], [total])
    kept = total
    if through_cpu:
        real, wave = (g.tensor(name, (1, 4), DType.FLOAT32) for name in ("real", "wave"))
        g.op("DEQUANTIZE", [total], [real])
        g.op("SIN", [real], [wave])
        kept = g.tensor("kept", (1, 4), DType.INT8, scale=0.2, zero_point=0)
        g.op("QUANTIZE", [wave], [kept])
    g.op("ASSIGN_VARIABLE", [handle, kept], [])
    return write_model(g.finish([x], [total]))
