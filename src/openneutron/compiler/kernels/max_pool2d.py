"""MAX_POOL_2D: the largest of the taps inside the image, clamped."""

from __future__ import annotations

from dataclasses import dataclass

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import (
    activation_is_clamp,
    clamp_of,
    not_empty,
    pool_dimensions,
    pool_window,
    same_activations,
    window_matches,
)
from openneutron.compiler.l1 import Node
from openneutron.compiler.legalizer import Legalizer
from openneutron.microcode.abi import KernelAbi, param, register


@dataclass(frozen=True)
class MaxPool2dParams:
    """Parameters of a `max_pool2d` call."""

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
        id=5,
        name="max_pool2d",
        abi=1,
        operands=("input", "lut?", "output"),
        params=MaxPool2dParams,
        cost="lane",
        meaning="largest value of each window; taps outside the image do not count",
    )
)


@serves(
    "MAX_POOL_2D",
    limits=(pool_dimensions, not_empty, same_activations, activation_is_clamp, window_matches),
)
def legalize(state: Legalizer) -> None:
    """Emit the kernel of docs/numerics.md, Pooling; it compares stored values, whatever the output's quantization is."""
    window = pool_window(state.signature)
    low, high = clamp_of(state.signature)
    params = MaxPool2dParams(
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
