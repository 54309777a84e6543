"""`conv2d16`: CONV_2D of 16-bit activations and 8-bit weights, plain and grouped, summed in 64 bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from openneutron.compiler.kernels.common import clamp_of, require_input
from openneutron.compiler.kernels.wide import WIDE_MEANING, wide_table
from openneutron.compiler.l1 import Node
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.numbers.geometry import Window
from openneutron.compiler.numbers.packing import pack_grouped
from openneutron.microcode.abi import KernelAbi, param, register


@dataclass(frozen=True)
class Conv2d16Params:
    """Parameters of a `conv2d16` call."""

    kernel_h: int = param("rows of the window")
    kernel_w: int = param("columns of the window")
    stride_h: int = param("output row y reads input rows from y*stride_h - pad_top")
    stride_w: int = param("likewise for columns")
    dilation_h: int = param("distance of taps in rows")
    dilation_w: int = param("distance of taps in columns")
    pad_top: int = param("rows of zeros above the image")
    pad_left: int = param("columns of zeros left of the image")
    groups: int = param("channel groups; each reads input channels / groups")
    narrow: int = param("1: sums wrap in 32 bits, as the reference's with an INT32 bias")
    clamp_low: int = param("smallest output")
    clamp_high: int = param("largest output")


ABI = register(
    KernelAbi(
        id=40,
        name="conv2d16",
        abi=1,
        operands=("input", "weights", "table", "output"),
        params=Conv2d16Params,
        cost="conv",
        meaning=f"dense convolution of 16-bit activations; [groups][Cout/M][taps][Cin/N][M][N] {WIDE_MEANING}",
    )
)


def emit_conv2d16(
    state: Legalizer, weights: npt.NDArray[np.int8], bias: npt.NDArray[np.int64], window: Window, groups: int
) -> None:
    """Emit the kernel for weights [Cout, h, w, Cin / groups] (docs/numerics.md, 16-bit activations)."""
    x, y = require_input(state.signature, 0), state.signature.outputs[0]
    cout, kernel_h, kernel_w, cin = weights.shape
    assert cin * groups == x.shape[3]
    table = wide_table(state.signature, bias, state.target)
    low, high = clamp_of(state.signature)
    flat = weights.reshape(cout, kernel_h * kernel_w, cin)
    packed = pack_grouped(flat, groups, state.target.units, state.target.length)
    n, oh, ow, _ = y.shape
    state.emit(
        Node(
            kernel=ABI.name,
            operands=[state.value(0), packed, table.data, state.output()],
            output=state.output(),
            params=Conv2d16Params(
                **window.fields(), groups=groups, narrow=table.narrow, clamp_low=low, clamp_high=high
            ),
            rounding=table.rounding,
            demand={0: window.demand},
            macs=n * oh * ow * cout * kernel_h * kernel_w * cin,
        )
    )
