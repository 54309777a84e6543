"""Use the full dot-product length for convolutions with few input channels by merging m neighbouring pixels into one.

Before:  y [H, W, Cout] = conv2d(x [H, W, 3], 5 x 5)
After:   the same bytes as y' [H, W/2, 2 Cout] = conv2d(x' [H, W/2, 6], 5 x 3), weights spread and zero-padded

A pure view on both sides: no copy, the same accumulators, the same rounding. Taken where the machine model says it is
faster (docs/compiler.md, Passes).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from openneutron.compiler.cost import CostModel, home_region
from openneutron.compiler.l1 import KernelGraph, Node
from openneutron.compiler.numbers.multipliers import channel_table, wide_channel_table
from openneutron.compiler.numbers.packing import pack_dense, unpack_dense
from openneutron.machine.targets import Target

if TYPE_CHECKING:
    from openneutron.compiler.kernels.conv2d import Conv2dParams
    from openneutron.compiler.kernels.conv2d16 import Conv2d16Params

MAX_MERGE = 8  # pixels; more never fits more lanes than the widest array has


def _spread(
    weights: npt.NDArray[np.int8], p: Conv2dParams | Conv2d16Params, merge: int, outputs: int
) -> tuple[npt.NDArray[np.int8], int, int]:
    """Weights [Cout, Kh, Kw, Cin] for merged pixels, their columns, and the padding on the left in merged pixels."""
    cout, kernel_h, kernel_w, cin = weights.shape
    start = -p.pad_left // merge
    columns = ((outputs - 1) * p.stride_w - p.pad_left + kernel_w - 1) // merge - start + 1
    spread = np.zeros((outputs, cout, kernel_h, columns, merge, cin), np.int8)
    for j in range(outputs):
        for t in range(columns):
            for i in range(merge):
                kx = (t + start) * merge + i - j * p.stride_w + p.pad_left
                if 0 <= kx < kernel_w:
                    spread[j, :, :, t, i] = weights[:, :, kx]
    return spread.reshape(outputs * cout, kernel_h, columns, merge * cin), columns, -start


def _merge(graph: KernelGraph, node: Node, target: Target, merge: int) -> Node | None:
    """The node with `merge` input pixels as one, or None where the widths do not divide."""
    p: Conv2dParams | Conv2d16Params = node.params
    source, packed, table = node.operands[0], node.operands[1], node.operands[2]
    assert isinstance(source, int) and isinstance(packed, np.ndarray) and isinstance(table, np.ndarray)
    _, _, width, cin = graph.values[source].shape
    _, _, out_width, cout = graph.values[node.output].shape
    outputs = merge // p.stride_w
    if merge % p.stride_w or width % merge or out_width % outputs:
        return None
    weights = unpack_dense(packed, (cout, p.kernel_h * p.kernel_w, cin), target.units, target.length)
    spread, columns, pad = _spread(weights.reshape(cout, p.kernel_h, p.kernel_w, cin), p, merge, outputs)
    made = replace(
        node,
        operands=list(node.operands),
        params=replace(p, kernel_w=columns, stride_w=1, pad_left=pad),
        merge={0: merge, len(node.operands) - 1: outputs},
        notes=(*node.notes, f"{merge} pixels merged"),
    )
    flat = spread.reshape(outputs * cout, p.kernel_h * columns, merge * cin)
    made.operands[1] = pack_dense(flat, target.units, target.length)
    made.operands[2] = _repeat(table, cout, outputs, target.units)
    return made


def _repeat(table: npt.NDArray[np.uint8], channels: int, times: int, units: int) -> npt.NDArray[np.uint8]:
    """Return a table whose channels come several times; one of 16-bit activations has the upper half of its bias last."""
    columns = np.frombuffer(table.tobytes(), "<i4").reshape(-1, -(-channels // units) * units)[:, :channels]
    bias, multipliers, shifts, *high = np.tile(columns, (1, times)).astype(np.int64)
    if not high:
        return channel_table(bias, multipliers, shifts, units)
    return wide_channel_table((high[0] << 32) + (bias & 0xFFFFFFFF), multipliers, shifts, units)


def _candidate(graph: KernelGraph, node: Node, target: Target) -> bool:
    if node.kernel not in ("conv2d", "conv2d16"):
        return False
    p: Conv2dParams | Conv2d16Params = node.params
    source, output = node.operands[0], graph.values[node.output]
    assert isinstance(source, int)
    x = graph.values[source]
    plain = p.groups == 1 and getattr(p, "weights_zero", 0) == 0 and p.dilation_w == 1
    return plain and x.shape[3] < target.length and x.alias is None and output.alias is None


def merge_pixels(graph: KernelGraph, target: Target) -> int:
    """Merge where it saves cycles."""
    acted = 0
    for at, node in enumerate(graph.nodes):
        if not _candidate(graph, node, target):
            continue
        height = graph.values[node.output].shape[1]
        best, least = node, CostModel(graph, target, local=home_region(target)).cycles(at, height)
        for merge in range(2, MAX_MERGE + 1):
            made = _merge(graph, node, target, merge)
            if made is None:
                continue
            graph.nodes[at] = made
            cycles = CostModel(graph, target, local=home_region(target)).cycles(at, height)
            if cycles < least:
                best, least = made, cycles
        graph.nodes[at] = best
        acted += best is not node
    return acted
