"""`fully_connected16`: FULLY_CONNECTED of 16-bit activations and 8-bit weights, rounded as round(double(acc) * m)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from openneutron.compiler.kernels.common import clamp_of
from openneutron.compiler.kernels.wide import WIDE_MEANING, wide_table
from openneutron.compiler.l1 import Node, RowDemand
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.numbers.packing import pack_dense
from openneutron.microcode.abi import KernelAbi, param, register


@dataclass(frozen=True)
class FullyConnected16Params:
    """Parameters of a `fully_connected16` call."""

    narrow: int = param("1: sums wrap in 32 bits, as the reference's with an INT32 bias")
    clamp_low: int = param("smallest output")
    clamp_high: int = param("largest output")


ABI = register(
    KernelAbi(
        id=43,
        name="fully_connected16",
        abi=1,
        operands=("input", "weights", "table", "output"),
        params=FullyConnected16Params,
        cost="fc",
        meaning=f"product of 16-bit vectors with constant weights; [Cout/M][K/N][M][N] {WIDE_MEANING}",
    )
)


def emit_fully_connected16(
    state: Legalizer, source: int, weights: npt.NDArray[np.int8], bias: npt.NDArray[np.int64], *, streams: bool
) -> None:
    """Emit the kernel on `source`, whose pixels are the vectors (docs/numerics.md, 16-bit activations)."""
    y = state.signature.outputs[0]
    outputs, inputs = weights.shape
    table = wide_table(state.signature, bias, state.target, exact=True)
    low, high = clamp_of(state.signature)
    packed = pack_dense(weights.reshape(outputs, 1, inputs), state.target.units, state.target.length)
    state.emit(
        Node(
            kernel=ABI.name,
            operands=[source, packed, table.data, state.output()],
            output=state.output(),
            params=FullyConnected16Params(table.narrow, low, high),
            rounding=table.rounding,
            demand={0: RowDemand()} if streams else None,
            macs=math.prod(y.shape) * inputs,
        )
    )
