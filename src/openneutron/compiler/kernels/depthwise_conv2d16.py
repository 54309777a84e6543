"""`depthwise_conv2d16`: DEPTHWISE_CONV_2D of 16-bit activations and 8-bit weights, summed in 64 bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from openneutron.compiler.kernels.common import clamp_of, require_input
from openneutron.compiler.kernels.wide import WIDE_MEANING, wide_table
from openneutron.compiler.l1 import Node
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.numbers.geometry import Window
from openneutron.compiler.numbers.packing import pack_depthwise
from openneutron.microcode.abi import KernelAbi, param, register


@dataclass(frozen=True)
class DepthwiseConv2d16Params:
    """Parameters of a `depthwise_conv2d16` call."""

    kernel_h: int = param("rows of the window")
    kernel_w: int = param("columns of the window")
    stride_h: int = param("output row y reads input rows from y*stride_h - pad_top")
    stride_w: int = param("likewise for columns")
    dilation_h: int = param("distance of taps in rows")
    dilation_w: int = param("distance of taps in columns")
    pad_top: int = param("rows of zeros above the image")
    pad_left: int = param("columns of zeros left of the image")
    depth_multiplier: int = param("output channel c reads input channel c / depth_multiplier")
    narrow: int = param("1: sums wrap in 32 bits, as the reference's with an INT32 bias")
    clamp_low: int = param("smallest output")
    clamp_high: int = param("largest output")


ABI = register(
    KernelAbi(
        id=41,
        name="depthwise_conv2d16",
        abi=1,
        operands=("input", "weights", "table", "output"),
        params=DepthwiseConv2d16Params,
        cost="lane",
        meaning=f"depth-wise convolution of 16-bit activations; [C/M][taps][M] {WIDE_MEANING}",
    )
)


def emit_depthwise16(
    state: Legalizer, weights: npt.NDArray[np.int8], bias: npt.NDArray[np.int64], window: Window
) -> None:
    """Emit the kernel for weights [h, w, output channels] (docs/numerics.md, 16-bit activations)."""
    x, y = require_input(state.signature, 0), state.signature.outputs[0]
    kernel_h, kernel_w, cout = weights.shape
    table = wide_table(state.signature, bias, state.target)
    low, high = clamp_of(state.signature)
    taps = np.ascontiguousarray(weights.reshape(kernel_h * kernel_w, cout))
    n, oh, ow, _ = y.shape
    state.emit(
        Node(
            kernel=ABI.name,
            operands=[state.value(0), pack_depthwise(taps, state.target.units), table.data, state.output()],
            output=state.output(),
            params=DepthwiseConv2d16Params(
                **window.fields(), depth_multiplier=cout // x.shape[3], narrow=table.narrow, clamp_low=low,
                clamp_high=high,
            ),
            rounding=table.rounding,
            demand={0: window.demand},
            macs=n * oh * ow * cout * kernel_h * kernel_w,
        )
    )  # fmt: skip
