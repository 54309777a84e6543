"""AVERAGE_POOL_2D: the mean of the taps inside the image, halves away from zero, clamped."""

from __future__ import annotations

from dataclasses import dataclass

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import (
    activation_is_clamp,
    clamp_of,
    not_empty,
    pool_dimensions,
    pool_window,
    require_input,
    same_activations,
    window_matches,
)
from openneutron.compiler.l1 import Node
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.signature import OpSignature
from openneutron.machine.targets import Target
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.verdict import OK, Verdict, limit, no

_MAX_TAPS = {1: 1 << 22, 2: 1 << 15}  # by bytes per element: what the firmware sums in INT32


@dataclass(frozen=True)
class AvgPool2dParams:
    """Parameters of a `avg_pool2d` call."""

    kernel_h: int = param("rows of the window", grows=2)
    kernel_w: int = param("columns of the window", grows=2)
    stride_h: int = param("output row y reads input rows from y*stride_h - pad_top")
    stride_w: int = param("likewise for columns")
    pad_top: int = param("rows above the image")
    pad_left: int = param("columns left of the image")
    clamp_low: int = param("smallest output")
    clamp_high: int = param("largest output")


ABI = register(
    KernelAbi(
        id=6,
        name="avg_pool2d",
        abi=1,
        operands=("input", "lut?", "output"),
        params=AvgPool2dParams,
        cost="lane",
        meaning="mean of each window over the taps inside the image, halves rounded away from zero",
    )
)


@limit("a window may cover at most 4194304 elements of the image, of INT16 at most 32768")
def taps_sum_in_int32(op: OpSignature, target: Target) -> Verdict:
    x = require_input(op, 0)
    taps = min(op.options.filterHeight, x.shape[1]) * min(op.options.filterWidth, x.shape[2])
    return OK if taps <= _MAX_TAPS[x.dtype.itemsize] else no(f"it covers {taps}", hint="pool in two steps")


@serves(
    "AVERAGE_POOL_2D",
    limits=(pool_dimensions, not_empty, same_activations, activation_is_clamp, window_matches, taps_sum_in_int32),
)
def legalize(state: Legalizer) -> None:
    """Emit the kernel of docs/numerics.md, Pooling; it averages stored values, whatever the output's quantization is."""
    window = pool_window(state.signature)
    low, high = clamp_of(state.signature)
    params = AvgPool2dParams(
        kernel_h=window.kernel_h, kernel_w=window.kernel_w, stride_h=window.stride_h, stride_w=window.stride_w,
        pad_top=window.pad_top, pad_left=window.pad_left, clamp_low=low, clamp_high=high,
    )  # fmt: skip
    state.emit(
        Node(
            kernel=ABI.name,
            operands=[state.value(0), None, state.output()],
            output=state.output(),
            params=params,
            demand={0: window.demand},
        )
    )
