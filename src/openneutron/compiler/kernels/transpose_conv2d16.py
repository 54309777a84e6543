"""`transpose_conv2d16`: TRANSPOSE_CONV of 16-bit activations and 8-bit weights, summed in 64 bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from openneutron.compiler.kernels.common import clamp_of, require_input
from openneutron.compiler.kernels.wide import WIDE_MEANING, wide_table
from openneutron.compiler.l1 import Node
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.numbers.geometry import Window, transposed_demand
from openneutron.compiler.numbers.packing import pack_dense
from openneutron.compiler.signature import OpSignature
from openneutron.microcode.abi import KernelAbi, param, register


@dataclass(frozen=True)
class TransposeConv2d16Params:
    """Parameters of a `transpose_conv2d16` call."""

    kernel_h: int = param("rows of the filter")
    kernel_w: int = param("columns of the filter")
    stride_h: int = param("input row i adds to output rows from i*stride_h - pad_top")
    stride_w: int = param("likewise for columns")
    pad_top: int = param("rows cropped at the top")
    pad_left: int = param("columns cropped at the left")
    narrow: int = param("1: sums wrap in 32 bits, as the reference's with an INT32 bias")
    clamp_low: int = param("smallest output")
    clamp_high: int = param("largest output")


ABI = register(
    KernelAbi(
        id=42,
        name="transpose_conv2d16",
        abi=1,
        operands=("input", "weights", "table", "output"),
        params=TransposeConv2d16Params,
        cost="conv",
        meaning=f"transposed convolution of 16-bit activations; [Cout/M][taps][Cin/N][M][N] {WIDE_MEANING}",
    )
)


def emit_transpose16(
    state: Legalizer, op: OpSignature, weights: npt.NDArray[np.int8], bias: npt.NDArray[np.int64], window: Window
) -> None:
    """Emit the kernel; `op` is the signature with inputs as data, filter, bias (docs/numerics.md, 16-bit activations)."""
    cout, kernel_h, kernel_w, cin = weights.shape
    table = wide_table(op, bias, state.target)
    low, high = clamp_of(op)
    packed = pack_dense(weights.reshape(cout, kernel_h * kernel_w, cin), state.target.units, state.target.length)
    n, height, width, _ = require_input(op, 0).shape
    state.emit(
        Node(
            kernel=ABI.name,
            operands=[state.value(2), packed, table.data, state.output()],
            output=state.output(),
            params=TransposeConv2d16Params(
                kernel_h=kernel_h, kernel_w=kernel_w, stride_h=window.stride_h, stride_w=window.stride_w,
                pad_top=window.pad_top, pad_left=window.pad_left, narrow=table.narrow, clamp_low=low, clamp_high=high,
            ),
            rounding=table.rounding,
            demand={0: transposed_demand(window)},
            macs=n * height * width * cout * kernel_h * kernel_w * cin,
        )
    )  # fmt: skip
