"""Transposed convolution: LiteRT knows only SAME and VALID, so other paddings cut a VALID result.

It knows no groups either: a few of them become one convolution whose weights are zero between groups, and several such
convolutions work on slices of the channels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from openneutron.executorch.lower.ops._activation import fuse_activation
from openneutron.executorch.lower.ops._slice import cut
from openneutron.executorch.lower.ops._weights import weights_and_bias
from openneutron.executorch.lower.ops._window import NHWC, Window
from openneutron.executorch.lower.values import Value
from openneutron.litert.graph import DType, Quantization
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from openneutron.executorch.lower.call import Call


@limit("a transposed convolution must have padding smaller than the kernel's extent")
def transposed_fits(call: Call) -> Verdict:
    if not call["transposed"]:
        return OK
    weight = call.value("weight")
    space = weight.rank - 2
    for axis in range(space):
        extent = (weight.shape[2 + axis] - 1) * call.numbers("dilation", space)[axis] + 1
        if call.numbers("padding", space)[axis] >= extent:
            return no(f"padding is {call['padding']}, the kernel spans {extent}")
    return OK


# Channels of one convolution that stands for several groups: as many as a dot-product unit of the smallest array takes
# at once, so that the zeros between groups cost no time there.
_LANES = 8


def lower_conv_transpose(
    call: Call, x: Value, weight: Value, bias: Value | None, window: Window, out: tuple[int, ...]
) -> Value:
    """Lower to TRANSPOSE_CONV; groups become several of them on slices, and a CONCATENATION."""
    groups = int(call["groups"])
    if window.dilation != (1, 1):
        weight = _dilate(call, weight, window)
    if groups == 1:
        return _lower_one(call, x, weight, bias, window, out)
    inputs, outputs = weight.shape[0] // groups, weight.shape[1]
    together = max(1, _LANES // max(inputs, outputs))
    parts = []
    for first in range(0, groups, together):
        count = min(together, groups - first)
        rows = (first * inputs, (first + count) * inputs)
        columns = (first * outputs, (first + count) * outputs)
        begin, size = [0, rows[0], 0, 0], [x.shape[0], rows[1] - rows[0], *x.shape[2:]]
        piece = cut(call, x, begin, size, [1] * 4)
        dense = _block_diagonal(call, weight, rows, count)
        part_bias = None if bias is None else _slice_bias(call, bias, columns)
        part = (out[0], columns[1] - columns[0], *out[2:])
        parts.append(_lower_one(call, piece, dense, part_bias, window, part))
    if len(parts) == 1:
        return parts[0]
    value, made = call.result(NHWC, parts[0].quantization, out)
    tensors = [call.tensor(part, NHWC) for part in parts]
    call.emit("CONCATENATION", tensors, [made], axis=3, fused_activation_function="NONE")
    return value


def _block_diagonal(call: Call, weight: Value, rows: tuple[int, int], count: int) -> Value:
    """Return the weights of `count` groups as those of one: [all inputs, all outputs, ...], zero between groups."""
    data = weight.array()[rows[0] : rows[1]]
    inputs, outputs = data.shape[0] // count, data.shape[1]
    dense = np.zeros((data.shape[0], count * outputs, *data.shape[2:]), data.dtype)
    for group in range(count):
        own = slice(group * inputs, (group + 1) * inputs)
        dense[own, group * outputs : (group + 1) * outputs] = data[own]
    q = weight.quantization
    assert q is not None
    if q.per_channel:
        # The weights' dimension of outputs counts those of one group, so groups share their scales.
        q = Quantization(q.scale * count, (0,) * (count * outputs), 1)
    return call.layouts.constant(f"{weight.storage.name}_groups", dense, weight.storage.dtype, q)


def _slice_bias(call: Call, bias: Value, columns: tuple[int, int]) -> Value:
    data = bias.array().reshape(-1)[columns[0] : columns[1]]
    q = bias.quantization
    if q is not None and q.per_channel:
        picked = slice(*columns)
        q = Quantization(q.scale[picked], q.zero_point[picked], 0)
    return call.layouts.constant(f"{bias.storage.name}_part", data, bias.storage.dtype, q)


def _lower_one(call: Call, x: Value, weight: Value, bias: Value | None, window: Window, out: tuple[int, ...]) -> Value:
    """Lower to TRANSPOSE_CONV, followed by a SLICE where PyTorch's padding is neither SAME nor VALID."""
    quantization = call.output_quantization()
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


def _dilate(call: Call, weight: Value, window: Window) -> Value:
    """Return the kernel with zeros between its taps."""
    data = weight.array()
    spread = np.zeros((*data.shape[:2], window.extent(0), window.extent(1)), data.dtype)
    spread[:, :, :: window.dilation[0], :: window.dilation[1]] = data
    q = weight.quantization
    if q is not None and q.per_channel:
        q = type(q)(q.scale, q.zero_point, weight.channel_axis)
    return call.layouts.constant(f"{weight.storage.name}_dilated", spread, weight.storage.dtype, q)
