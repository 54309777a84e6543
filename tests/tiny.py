"""Tiny models that between them walk every road of the package, in milliseconds."""

from __future__ import annotations

import numpy as np

from openneutron.litert import DType, GraphBuilder
from openneutron.litert.write import write_model


def convnet() -> bytes:
    """INT8: convolution with ReLU, max pooling, a linear layer, softmax. All of it has kernels."""
    rng = np.random.default_rng(7)
    g = GraphBuilder()
    x = g.tensor("image", (1, 8, 8, 3), DType.INT8, scale=1 / 128, zero_point=0)
    scales = rng.uniform(0.002, 0.01, 8).astype(np.float32)
    filters = g.tensor("filters", (8, 3, 3, 3), DType.INT8, scales, data=rng.integers(-127, 128, (8, 3, 3, 3)))
    bias = g.tensor("bias", (8,), DType.INT32, scales / np.float32(128), data=rng.integers(-400, 400, 8))
    y = g.tensor("conv", (1, 8, 8, 8), DType.INT8, scale=0.02, zero_point=-128)
    g.op("CONV_2D", [x, filters, bias], [y], padding="SAME", stride_w=1, stride_h=1, fused_activation_function="RELU")
    z = g.tensor("pool", (1, 4, 4, 8), DType.INT8, scale=0.02, zero_point=-128)
    g.op("MAX_POOL_2D", [y], [z], padding="VALID", stride_w=2, stride_h=2, filter_width=2, filter_height=2)
    shape = g.tensor("shape", (2,), DType.INT32, data=[1, 128])
    flat = g.tensor("flat", (1, 128), DType.INT8, scale=0.02, zero_point=-128)
    g.op("RESHAPE", [z, shape], [flat], new_shape=[1, 128])
    dense = g.tensor("dense", (5, 128), DType.INT8, scale=0.001, data=rng.integers(-127, 128, (5, 128)))
    offset = g.tensor("offset", (5,), DType.INT32, scale=0.00002, data=rng.integers(-99, 99, 5))
    logits = g.tensor("logits", (1, 5), DType.INT8, scale=0.1, zero_point=3)
    g.op("FULLY_CONNECTED", [flat, dense, offset], [logits])
    scores = g.tensor("scores", (1, 5), DType.INT8, scale=1 / 256, zero_point=-128)
    g.op("SOFTMAX", [logits], [scores], beta=1.0)
    return write_model(g.finish([x], [scores]))


def sandwich() -> bytes:
    """INT8 work, then a float SIN that has no kernel, then INT8 work again; two inputs, two outputs."""
    g = GraphBuilder()
    a, b = (
        g.tensor(name, (1, 4, 4, 2), DType.INT8, scale=0.05, zero_point=zero) for name, zero in (("a", 3), ("b", -7))
    )
    total = g.tensor("total", (1, 4, 4, 2), DType.INT8, scale=0.1, zero_point=0)
    g.op("ADD", [a, b], [total])
    real = g.tensor("real", (1, 4, 4, 2), DType.FLOAT32)
    g.op("DEQUANTIZE", [total], [real])
    wave = g.tensor("wave", (1, 4, 4, 2), DType.FLOAT32)
    g.op("SIN", [real], [wave])
    back = g.tensor("back", (1, 4, 4, 2), DType.INT8, scale=1 / 128, zero_point=0)
    g.op("QUANTIZE", [wave], [back])
    out = g.tensor("out", (1, 4, 4, 2), DType.INT8, scale=0.1, zero_point=5)
    g.op("ADD", [back, total], [out])
    return write_model(g.finish([a, b], [out, wave]))


def floats() -> bytes:
    """A model nobody quantized."""
    rng = np.random.default_rng(8)
    g = GraphBuilder()
    x = g.tensor("x", (1, 6), DType.FLOAT32)
    w = g.tensor("w", (4, 6), DType.FLOAT32, data=rng.standard_normal((4, 6)).astype(np.float32))
    h = g.tensor("h", (1, 4), DType.FLOAT32)
    g.op("FULLY_CONNECTED", [x, w, -1], [h])
    y = g.tensor("y", (1, 4), DType.FLOAT32)
    g.op("SOFTMAX", [h], [y], beta=1.0)
    return write_model(g.finish([x], [y]))
