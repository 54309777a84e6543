"""TRANSPOSE_CONV: each output gathers the inputs that a forward convolution would have spread over it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import (
    activation_is_clamp,
    bias_fits,
    bias_scale_matches,
    clamp_of,
    fixed_point,
    four_dimensions,
    is_wide,
    not_empty,
    requantize_shifts_fit,
    require_input,
    same_activations,
    static_weights,
    weights_as_int8,
    weights_scales_match,
    weights_zero_allowed,
)
from openneutron.compiler.kernels.transpose_conv2d16 import emit_transpose16
from openneutron.compiler.kernels.wide import wide_sums_fit
from openneutron.compiler.l1 import Node
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.numbers.geometry import WINDOW_MAX, transposed_demand, transposed_window
from openneutron.compiler.numbers.multipliers import channel_table
from openneutron.compiler.numbers.packing import pack_dense
from openneutron.compiler.signature import OpSignature
from openneutron.litert.graph import DType
from openneutron.machine.targets import Target
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.microcode.table import Rounding
from openneutron.verdict import OK, Limit, Verdict, limit, no


@dataclass(frozen=True)
class TransposeConv2dParams:
    """Parameters of a `transpose_conv2d` call."""

    kernel_h: int = param("rows of the filter")
    kernel_w: int = param("columns of the filter")
    stride_h: int = param("input row i adds to output rows from i*stride_h - pad_top")
    stride_w: int = param("likewise for columns")
    pad_top: int = param("rows cropped at the top")
    pad_left: int = param("columns cropped at the left")
    input_zero: int = param("subtracted from each input; not folded into the bias, because taps differ by position")
    weights_zero: int = param("zero point of the stored weights")
    output_zero: int = param("added after requantizing")
    clamp_low: int = param("smallest output")
    clamp_high: int = param("largest output")


ABI = register(
    KernelAbi(
        id=3,
        name="transpose_conv2d",
        abi=1,
        operands=("input", "weights", "table", "lut?", "output"),
        params=TransposeConv2dParams,
        cost="conv",
        meaning="transposed convolution; weights [Cout/M][taps][Cin/N][M][N], bias/multiplier/shift per channel",
    )
)


def as_convolution(op: OpSignature) -> OpSignature:
    """Return the signature with inputs in the order of other convolutions: data, filter, bias."""
    return replace(op, inputs=(op.input(2), op.input(1), op.input(3)))


def _on_convolution(one: Limit) -> Limit:
    return Limit(one.code, one.rule, lambda op, target: one.check(as_convolution(op), target))


@limit("the output shape must be constant and equal to the output's shape")
def output_shape_constant(op: OpSignature, target: Target) -> Verdict:
    shape, y = op.input(0), op.outputs[0]
    if shape is None or not shape.constant or shape.dtype is not DType.INT32:
        return no("the output shape is computed at run time", hint="export with static shapes")
    if shape.values is not None and tuple(int(v) for v in shape.values.reshape(-1)) != y.shape:
        return no(f"the shape input says {shape.values.tolist()}, the output is {list(y.shape)}")
    return OK


@limit("filter must be [output channels, h, w, input channels]")
def filter_matches(op: OpSignature, target: Target) -> Verdict:
    x, w, y = require_input(op, 2), require_input(op, 1), op.outputs[0]
    if (w.shape[0], w.shape[3]) != (y.shape[3], x.shape[3]) or x.shape[0] != y.shape[0]:
        return no(f"input {list(x.shape)}, filter {list(w.shape)}, output {list(y.shape)}")
    return OK


@limit("stride and kernel must be 1 to 32767, dilation 1, and the input as large as a forward window's output")
def forward_size_matches(op: OpSignature, target: Target) -> Verdict:
    if op.options is None:
        return no("the operator has no options", hint="the file is incomplete: convert the model again")
    x, w, y = require_input(op, 2), require_input(op, 1), op.outputs[0]
    if not all(1 <= v <= WINDOW_MAX for v in (*w.shape[1:3], op.options.strideH, op.options.strideW)):
        return no(f"filter {list(w.shape)}, stride {[op.options.strideH, op.options.strideW]}")
    window = transposed_window(op.options, (w.shape[1], w.shape[2]), (y.shape[1], y.shape[2]))
    if (window.out_h, window.out_w) != x.shape[1:3]:
        return no(f"the window gives {[window.out_h, window.out_w]}, the input is {list(x.shape[1:3])}")
    return OK if window.fits() else no(f"output {list(y.shape)} is too large for the window")


@serves(
    "TRANSPOSE_CONV",
    limits=(
        output_shape_constant,
        *map(
            _on_convolution,
            (four_dimensions, not_empty, same_activations, static_weights, weights_zero_allowed, weights_scales_match),
        ),
        filter_matches,
        *map(
            _on_convolution, (bias_fits, bias_scale_matches, requantize_shifts_fit, wide_sums_fit, activation_is_clamp)
        ),
        forward_size_matches,
    ),
)
def legalize(state: Legalizer) -> None:
    """Emit the kernel with the integer parameters of docs/numerics.md, Transposed convolution."""
    x, w, y = require_input(state.signature, 2), require_input(state.signature, 1), state.signature.outputs[0]
    weights, weights_zero = weights_as_int8(state.constant(1), w)
    cout, kernel_h, kernel_w, cin = weights.shape
    bias = state.constant(3).astype(np.int64).reshape(-1) if state.has(3) else np.zeros(cout, np.int64)
    window = transposed_window(state.op.options, (kernel_h, kernel_w), (y.shape[1], y.shape[2]))
    if is_wide(state.signature):
        emit_transpose16(state, as_convolution(state.signature), weights, bias, window)
        return
    multipliers, shifts = fixed_point(x, w, y)
    low, high = clamp_of(state.signature)
    units, length = state.target.units, state.target.length
    packed = pack_dense(weights.reshape(cout, kernel_h * kernel_w, cin), units, length)
    params = TransposeConv2dParams(
        kernel_h=kernel_h, kernel_w=kernel_w, stride_h=window.stride_h, stride_w=window.stride_w,
        pad_top=window.pad_top, pad_left=window.pad_left, input_zero=x.zero_point, weights_zero=weights_zero,
        output_zero=y.zero_point, clamp_low=low, clamp_high=high,
    )  # fmt: skip
    n, height, width, _ = x.shape
    state.emit(
        Node(
            kernel=ABI.name,
            operands=[state.value(2), packed, channel_table(bias, multipliers, shifts, units), None, state.output()],
            output=state.output(),
            params=params,
            rounding=Rounding.DOUBLE,
            demand={0: transposed_demand(window)},
            macs=n * height * width * cout * kernel_h * kernel_w * cin,
        )
    )
