"""CONV_2D, plain and grouped: dense dot products over packed weights, requantized per channel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import (
    activation_is_clamp,
    bias_fits,
    bias_given,
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
    window_matches,
)
from openneutron.compiler.kernels.depthwise_conv2d import emit_depthwise
from openneutron.compiler.kernels.wide import wide_sums_fit
from openneutron.compiler.l1 import Node
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.numbers.geometry import window_of
from openneutron.compiler.numbers.multipliers import channel_table
from openneutron.compiler.numbers.packing import fold_zero_point, pack_grouped
from openneutron.compiler.signature import OpSignature
from openneutron.machine.targets import Target
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.microcode.table import Rounding
from openneutron.verdict import OK, Verdict, limit, no


@dataclass(frozen=True)
class Conv2dParams:
    """Parameters of a `conv2d` call."""

    kernel_h: int = param("rows of the window")
    kernel_w: int = param("columns of the window")
    stride_h: int = param("output row y reads input rows from y*stride_h - pad_top")
    stride_w: int = param("likewise for columns")
    dilation_h: int = param("distance of taps in rows")
    dilation_w: int = param("distance of taps in columns")
    pad_top: int = param("rows of zero points above the image")
    pad_left: int = param("columns of zero points left of the image")
    groups: int = param("channel groups; each reads input channels / groups")
    input_zero: int = param("value of padded taps")
    weights_zero: int = param("zero point of the stored weights; times the sum of activations, it is subtracted")
    output_zero: int = param("added after requantizing")
    clamp_low: int = param("smallest output")
    clamp_high: int = param("largest output")


ABI = register(
    KernelAbi(
        id=1,
        name="conv2d",
        abi=1,
        operands=("input", "weights", "table", "lut?", "output"),
        params=Conv2dParams,
        cost="conv",
        meaning="dense convolution; weights [groups][Cout/M][taps][Cin/N][M][N], bias/multiplier/shift per channel",
    )
)


@limit("input channels must be a multiple of the filter's channels, output channels of the groups")
def groups_divide(op: OpSignature, target: Target) -> Verdict:
    x, w, y = require_input(op, 0), require_input(op, 1), op.outputs[0]
    cin, per_group, cout = x.shape[3], w.shape[3], w.shape[0]
    if cin % per_group or cout % (cin // per_group) or y.shape[3] != cout:
        return no(f"{cin} input channels, filter {list(w.shape)}, {y.shape[3]} output channels")
    return OK


@limit("taps times input channels, rounded up to the dot-product length, must not exceed 65535")
def reduction_fits(op: OpSignature, target: Target) -> Verdict:
    w = require_input(op, 1)
    length = w.shape[1] * w.shape[2] * -(-w.shape[3] // target.length) * target.length
    return OK if length <= 65_535 else no(f"it is {length}", hint="use a smaller kernel or split the channels")


@serves(
    "CONV_2D",
    limits=(
        four_dimensions,
        not_empty,
        same_activations,
        static_weights,
        weights_zero_allowed,
        groups_divide,
        bias_given,
        bias_fits,
        weights_scales_match,
        bias_scale_matches,
        requantize_shifts_fit,
        activation_is_clamp,
        window_matches,
        reduction_fits,
        wide_sums_fit,
    ),
)
def legalize(state: Legalizer) -> None:
    """Integer parameters as in docs/numerics.md, Convolution; one input channel per group is a depth-wise convolution."""
    x, w, y = require_input(state.signature, 0), require_input(state.signature, 1), state.signature.outputs[0]
    weights, weights_zero = weights_as_int8(state.constant(1), w)
    cout, kernel_h, kernel_w, cin = weights.shape
    groups = x.shape[3] // cin
    window = window_of(state.op.options, (kernel_h, kernel_w), (x.shape[1], x.shape[2]))
    bias = state.constant(2).astype(np.int64).reshape(-1)
    if cin == 1 and groups > 1:
        emit_depthwise(state, weights[..., 0].transpose(1, 2, 0), weights_zero, bias, window)
        return
    if is_wide(state.signature):
        from openneutron.compiler.kernels.conv2d16 import emit_conv2d16  # most models have 8 bits

        emit_conv2d16(state, weights, bias, window, groups)
        return
    multipliers, shifts = fixed_point(x, w, y)
    folded = fold_zero_point(bias, weights, x.zero_point, weights_zero)
    low, high = clamp_of(state.signature)
    units, length = state.target.units, state.target.length
    packed = pack_grouped(weights.reshape(cout, kernel_h * kernel_w, cin), groups, units, length)
    params = Conv2dParams(
        **window.fields(), groups=groups, input_zero=x.zero_point, weights_zero=weights_zero,
        output_zero=y.zero_point, clamp_low=low, clamp_high=high,
    )  # fmt: skip
    n, oh, ow, _ = y.shape
    state.emit(
        Node(
            kernel=ABI.name,
            operands=[state.value(0), packed, channel_table(folded, multipliers, shifts, units), None, state.output()],
            output=state.output(),
            params=params,
            rounding=Rounding.DOUBLE,
            demand={0: window.demand},
            macs=n * oh * ow * cout * kernel_h * kernel_w * cin,
        )
    )
