"""DEPTHWISE_CONV_2D with any depth multiplier: one input channel per output channel, requantized per channel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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
    window_matches,
)
from openneutron.compiler.kernels.wide import wide_sums_fit
from openneutron.compiler.l1 import Node
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.numbers.geometry import Window, window_of
from openneutron.compiler.numbers.multipliers import channel_table
from openneutron.compiler.numbers.packing import fold_zero_point, pack_depthwise
from openneutron.compiler.signature import OpSignature
from openneutron.machine.targets import Target
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.microcode.table import Rounding
from openneutron.verdict import OK, Verdict, limit, no


@dataclass(frozen=True)
class DepthwiseConv2dParams:
    """Parameters of a `depthwise_conv2d` call."""

    kernel_h: int = param("rows of the window")
    kernel_w: int = param("columns of the window")
    stride_h: int = param("output row y reads input rows from y*stride_h - pad_top")
    stride_w: int = param("likewise for columns")
    dilation_h: int = param("distance of taps in rows")
    dilation_w: int = param("distance of taps in columns")
    pad_top: int = param("rows of zero points above the image")
    pad_left: int = param("columns of zero points left of the image")
    depth_multiplier: int = param("output channel c reads input channel c / depth_multiplier")
    input_zero: int = param("value of padded taps")
    weights_zero: int = param("zero point of the stored weights")
    output_zero: int = param("added after requantizing")
    clamp_low: int = param("smallest output")
    clamp_high: int = param("largest output")


ABI = register(
    KernelAbi(
        id=2,
        name="depthwise_conv2d",
        abi=1,
        operands=("input", "weights", "table", "lut?", "output"),
        params=DepthwiseConv2dParams,
        cost="lane",
        meaning="depth-wise convolution; weights [C/M][taps][M], table bias/multiplier/shift per output channel",
    )
)


@limit("the filter must be [1, h, w, output channels], and output channels a multiple of input channels")
def channels_multiply(op: OpSignature, target: Target) -> Verdict:
    x, w, y = require_input(op, 0), require_input(op, 1), op.outputs[0]
    if w.shape[0] != 1 or y.shape[3] != w.shape[3] or w.shape[3] % x.shape[3]:
        return no(f"{x.shape[3]} input channels, filter {list(w.shape)}, {y.shape[3]} output channels")
    return OK


@limit("a bias must be left out by giving two inputs, not by index -1")
def bias_not_minus_one(op: OpSignature, target: Target) -> Verdict:
    absent = len(op.inputs) > 2 and op.input(2) is None
    return no("the bias index is -1", hint="remove the third input, as LiteRT demands") if absent else OK


def emit_depthwise(
    state: Legalizer, weights: npt.NDArray[np.int8], weights_zero: int, bias: npt.NDArray[np.int64], window: Window
) -> None:
    """Emit the kernel for weights [h, w, output channels] of the current operator (inputs: data, filter)."""
    if is_wide(state.signature):
        from openneutron.compiler.kernels.depthwise_conv2d16 import emit_depthwise16  # most models have 8 bits

        emit_depthwise16(state, weights, bias, window)
        return
    x, w, y = require_input(state.signature, 0), require_input(state.signature, 1), state.signature.outputs[0]
    kernel_h, kernel_w, cout = weights.shape
    multipliers, shifts = fixed_point(x, w, y)
    taps = np.ascontiguousarray(weights.reshape(kernel_h * kernel_w, cout))
    folded = fold_zero_point(bias, taps.T, x.zero_point, weights_zero)
    low, high = clamp_of(state.signature)
    units = state.target.units
    params = DepthwiseConv2dParams(
        **window.fields(), depth_multiplier=cout // x.shape[3], input_zero=x.zero_point, weights_zero=weights_zero,
        output_zero=y.zero_point, clamp_low=low, clamp_high=high,
    )  # fmt: skip
    n, oh, ow, _ = y.shape
    table = channel_table(folded, multipliers, shifts, units)
    state.emit(
        Node(
            kernel=ABI.name,
            operands=[state.value(0), pack_depthwise(taps, units), table, None, state.output()],
            output=state.output(),
            params=params,
            rounding=Rounding.DOUBLE,
            demand={0: window.demand},
            macs=n * oh * ow * cout * kernel_h * kernel_w,
        )
    )


@serves(
    "DEPTHWISE_CONV_2D",
    limits=(
        four_dimensions,
        not_empty,
        same_activations,
        static_weights,
        weights_zero_allowed,
        channels_multiply,
        bias_not_minus_one,
        bias_fits,
        weights_scales_match,
        bias_scale_matches,
        requantize_shifts_fit,
        activation_is_clamp,
        window_matches,
        wide_sums_fit,
    ),
)
def legalize(state: Legalizer) -> None:
    """Integer parameters as in docs/numerics.md, Depth-wise convolution; the depth multiplier comes from the shapes."""
    x = require_input(state.signature, 0)
    weights, weights_zero = weights_as_int8(state.constant(1), require_input(state.signature, 1))
    _, kernel_h, kernel_w, cout = weights.shape
    bias = state.constant(2).astype(np.int64).reshape(-1) if state.has(2) else np.zeros(cout, np.int64)
    window = window_of(state.op.options, (kernel_h, kernel_w), (x.shape[1], x.shape[2]))
    emit_depthwise(state, weights[0], weights_zero, bias, window)
