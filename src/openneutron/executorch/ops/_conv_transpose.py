"""Transposed convolution: LiteRT knows only SAME and VALID, so other paddings cut a VALID result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from openneutron.executorch.layout import Value
from openneutron.executorch.ops._activation import fuse_activation
from openneutron.executorch.ops._weights import weights_and_bias
from openneutron.executorch.ops._window import NHWC, Window
from openneutron.litert.graph import DType
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from openneutron.executorch.call import Call


@limit("a transposed convolution must have one group and padding smaller than the kernel's extent")
def transposed_fits(call: Call) -> Verdict:
    if not call["transposed"]:
        return OK
    if int(call["groups"]) != 1:
        return no(f"it has {call['groups']} groups", hint="use one group, or upsample and convolve")
    weight = call.value("weight")
    space = weight.rank - 2
    for axis in range(space):
        extent = (weight.shape[2 + axis] - 1) * call.numbers("dilation", space)[axis] + 1
        if call.numbers("padding", space)[axis] >= extent:
            return no(f"padding is {call['padding']}, the kernel spans {extent}")
    return OK


def lower_transposed(
    call: Call, x: Value, weight: Value, bias: Value | None, window: Window, out: tuple[int, ...]
) -> Value:
    """TRANSPOSE_CONV, followed by a SLICE where PyTorch's padding is neither SAME nor VALID."""
    quantization = call.output_quantization()
    if window.dilation != (1, 1):
        weight = _dilated(call, weight, window)
    extent = (window.extent(0), window.extent(1))
    weight_tensor, bias_tensor = weights_and_bias(call, x, weight, (1, 2, 3, 0), 1, bias)
    source = call.tensor(x, NHWC)
    activation = fuse_activation(call)
    options = {"stride_h": window.stride[0], "stride_w": window.stride[1], "fused_activation_function": activation}
    height, width = out[2:]
    if all(_is_same(window, extent, axis, x.shape[2 + axis], out[2 + axis]) for axis in (0, 1)):
        value, made = call.result(NHWC, quantization, out)
        shape = call.constant("output_shape", [out[0], height, width, out[1]], DType.INT32)
        call.emit("TRANSPOSE_CONV", [shape, weight_tensor, source, bias_tensor], [made], padding="SAME", **options)
        return value
    # VALID may be asked for up to stride - 1 rows more than the windows cover: they hold the bias alone.
    full = [
        max((x.shape[2 + axis] - 1) * window.stride[axis] + extent[axis], out[2 + axis] + window.padding[axis])
        for axis in (0, 1)
    ]
    whole, made = call.result(NHWC, quantization, (out[0], out[1], full[0], full[1]), f"{call.node.name}_full")
    shape = call.constant("output_shape", [out[0], full[0], full[1], out[1]], DType.INT32)
    call.emit("TRANSPOSE_CONV", [shape, weight_tensor, source, bias_tensor], [made], padding="VALID", **options)
    if full == [height, width]:
        return whole
    value, cut = call.result(NHWC, quantization, out)
    begin = call.constant("begin", [0, *window.padding, 0], DType.INT32)
    size = call.constant("size", [out[0], height, width, out[1]], DType.INT32)
    call.emit("SLICE", [made, begin, size], [cut])
    return value


def _is_same(window: Window, extent: tuple[int, int], axis: int, size: int, out: int) -> bool:
    stride = window.stride[axis]
    total = max(0, (-(-out // stride) - 1) * stride + extent[axis] - out)
    return -(-out // stride) == size and total // 2 == window.padding[axis]


def _dilated(call: Call, weight: Value, window: Window) -> Value:
    """The same kernel with zeros between its taps."""
    data = weight.array()
    spread = np.zeros((*data.shape[:2], window.extent(0), window.extent(1)), data.dtype)
    spread[:, :, :: window.dilation[0], :: window.dilation[1]] = data
    q = weight.quantization
    if q is not None and q.per_channel:
        q = type(q)(q.scale, q.zero_point, weight.channel_axis)
    return call.layouts.constant(f"{weight.storage.name}_dilated", spread, weight.storage.dtype, q)
