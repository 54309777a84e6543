"""RESIZE_BILINEAR: INT8 in integers with 10 fractional bits, UINT8 in float32."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import not_empty, same_activations
from openneutron.compiler.kernels.resize_nearest import resizes_images
from openneutron.compiler.l1 import Node, RowDemand
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.signature import OpSignature
from openneutron.litert.graph import DType
from openneutron.machine.targets import Target
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.verdict import OK, Verdict, limit, no

_ONE = 1024  # 10 fractional bits, as in the reference


@dataclass(frozen=True)
class ResizeBilinearParams:
    """Parameters of a `resize_bilinear` call."""

    scale_height: int = param("input rows per output row: INT8 in 1/1024, UINT8 the bits of a float32")
    scale_width: int = param("input columns per output column, likewise")
    half_pixel: int = param("1: pixel centres are at half positions")


ABI = register(
    KernelAbi(
        id=26,
        name="resize_bilinear",
        abi=1,
        operands=("input", "output"),
        params=ResizeBilinearParams,
        cost="element",
        meaning="bilinear interpolation of images: INT8 and INT16 in integers, UINT8 in float32",
    )
)


def scale_of(size: int, wanted: int, align_corners: bool) -> int:
    """Return input pixels per output pixel in 1/1024, rounded (docs/numerics.md, Resize)."""
    if align_corners and wanted > 1:
        size, wanted = size - 1, wanted - 1
    return (_ONE * size + wanted // 2) // wanted


def demand_of(height: int, wanted: int, scale: int, half_pixel: bool) -> RowDemand:
    """Return a demand that covers the two input rows of every output row."""
    rows: list[tuple[int, int]] = []
    for y in range(wanted):
        t = y * scale + (scale // 2 - _ONE // 2 if half_pixel else 0)
        low, high = max(t, 0) // _ONE, max(t + _ONE - 1, 0) // _ONE
        rows.append((min(low, height - 1), min(high, height - 1)))
    return demand_of_rows(height, rows)


def real_scale_of(size: int, wanted: int, align_corners: bool) -> np.float32:
    """Return input pixels per output pixel in float32, for UINT8."""
    if align_corners and wanted > 1:
        size, wanted = size - 1, wanted - 1
    return np.float32(size) / np.float32(wanted)


def float_bits(value: np.float32) -> int:
    """Return the INT32 with the bits of a float32."""
    return int(value.view(np.int32))


def real_rows(height: int, wanted: int, scale: np.float32, half_pixel: bool) -> list[tuple[int, int]]:
    """Return the two input rows of every output row of UINT8, computed in float32."""
    rows: list[tuple[int, int]] = []
    for y in range(wanted):
        t = (np.float32(y) + np.float32(0.5)) * scale - np.float32(0.5) if half_pixel else np.float32(y) * scale
        low, high = math.floor(t), math.ceil(t)
        rows.append((min(max(low, 0), height - 1), min(max(high, 0), height - 1)))
    return rows


def demand_of_rows(height: int, rows: Sequence[tuple[int, int]]) -> RowDemand:
    """Return the tightest demand of this form that covers both input rows of every output row."""
    wanted = len(rows)
    stride, divide = (height, wanted) if height % wanted else (height // wanted, 1)
    if wanted % height == 0:
        stride, divide = 1, wanted // height
    before = max(y * stride // divide - low for y, (low, _) in enumerate(rows))
    last = max(high - (y * stride // divide - before) for y, (_, high) in enumerate(rows))
    return RowDemand(stride, divide, before, last + 1)


@limit("align_corners and half_pixel_centers exclude each other")
def one_convention(op: OpSignature, target: Target) -> Verdict:
    options = op.options
    return no("both are set") if options and options.alignCorners and options.halfPixelCenters else OK


@serves("RESIZE_BILINEAR", limits=(not_empty, same_activations, resizes_images, one_convention))
def legalize(state: Legalizer) -> None:
    """Emit the kernel; steps between pixels are integers, for UINT8 float32. Scales and zero points do not matter."""
    x, y, options = state.signature.inputs[0], state.signature.outputs[0], state.op.options
    assert x is not None
    align, half = (bool(options.alignCorners), bool(options.halfPixelCenters)) if options else (False, False)
    tall, wide = scale_of(x.shape[1], y.shape[1], align), scale_of(x.shape[2], y.shape[2], align)
    demand = demand_of(x.shape[1], y.shape[1], tall, half)
    if x.dtype is DType.UINT8:
        real = real_scale_of(x.shape[1], y.shape[1], align)
        tall, wide = float_bits(real), float_bits(real_scale_of(x.shape[2], y.shape[2], align))
        demand = demand_of_rows(x.shape[1], real_rows(x.shape[1], y.shape[1], real, half))
    source, output = state.value(0), state.output()
    constant = state.graph.values[source].data is not None
    state.emit(
        Node(
            ABI.name,
            [source, output],
            output,
            ResizeBilinearParams(tall, wide, int(half)),
            demand={} if constant else {0: demand},
        )
    )
