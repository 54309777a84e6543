"""RESIZE_NEAREST_NEIGHBOR: tables of rows and columns to copy, made here in the reference's float32 steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import not_empty
from openneutron.compiler.kernels.movement import same_moved_type
from openneutron.compiler.l1 import ITEM_BYTES, Node, RowDemand
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.signature import OpSignature
from openneutron.machine.targets import Target
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.verdict import OK, Verdict, limit, no


@dataclass(frozen=True)
class ResizeNearestParams:
    """Parameters of a `resize_nearest` call."""

    item: int = param("bytes per element, 1 or 2")


ABI = register(
    KernelAbi(
        id=25,
        name="resize_nearest",
        abi=1,
        operands=("input", "rows", "columns", "output"),
        params=ResizeNearestParams,
        cost="element",
        meaning="output pixel (y, x) is input pixel (rows[y], columns[x]); INT32 tables",
    )
)


@limit("tensors must be 4-D with the same batch and channels")
def resizes_images(op: OpSignature, target: Target) -> Verdict:
    x, y = op.inputs[0], op.outputs[0]
    assert x is not None
    if len(x.shape) != 4 or len(y.shape) != 4 or (x.shape[0], x.shape[3]) != (y.shape[0], y.shape[3]):
        return no(f"shapes are {list(x.shape)} and {list(y.shape)}")
    return OK


def nearest(size: int, wanted: int, align_corners: bool, half_pixel: bool) -> list[int]:
    """Source index of each of `wanted` positions (docs/numerics.md, Resize).

    Example:
        >>> nearest(2, 4, False, False)
        [0, 0, 1, 1]
    """
    aligned = align_corners and wanted > 1
    scale = np.float32(size - 1) / np.float32(wanted - 1) if aligned else np.float32(size) / np.float32(wanted)
    offset = np.float32(0.5 if half_pixel else 0.0)
    found: list[int] = []
    for i in range(wanted):
        position = float((np.float32(i) + offset) * scale)
        source = math.floor(position + 0.5) if align_corners else math.floor(position)
        found.append(max(min(source, size - 1), 0))
    return found


def demand_of(rows: Sequence[int], height: int) -> RowDemand:
    """The tightest demand of this form that covers a table of source rows."""
    wanted = len(rows)
    stride, divide = (height // wanted, 1) if height % wanted == 0 else (height, wanted)
    if wanted % height == 0:
        stride, divide = 1, wanted // height
    if wanted > height and any(b - a not in (0, 1) for a, b in pairwise(rows)):
        stride, divide = 1, 1  # borders that run backwards: follow the output row by row
    early = [y * stride // divide - row for y, row in enumerate(rows)]
    return RowDemand(stride, divide, max(early), max(early) - min(early) + 1)


def emit_picks(state: Legalizer, source: int, output: int, rows: Sequence[int], columns: Sequence[int]) -> None:
    """One node that copies the named rows and columns."""
    tables = [np.frombuffer(np.asarray(t, "<i4").tobytes(), np.uint8) for t in (rows, columns)]
    v = state.graph.values[source]
    demand = {} if v.data is not None else {0: demand_of(rows, v.shape[1])}
    state.emit(
        Node(ABI.name, [source, *tables, output], output, ResizeNearestParams(ITEM_BYTES[v.dtype]), demand=demand)
    )


@serves("RESIZE_NEAREST_NEIGHBOR", limits=(same_moved_type, not_empty, resizes_images))
def legalize(state: Legalizer) -> None:
    """Index tables for both directions."""
    x, y, options = state.signature.inputs[0], state.signature.outputs[0], state.op.options
    assert x is not None
    align, half = (bool(options.alignCorners), bool(options.halfPixelCenters)) if options else (False, False)
    rows = nearest(x.shape[1], y.shape[1], align, half)
    columns = nearest(x.shape[2], y.shape[2], align, half)
    emit_picks(state, state.value(0), state.output(), rows, columns)
