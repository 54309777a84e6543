"""Cut layers with many weights into groups of output channels, so that a prefetch holds a piece and not a whole layer.

Before:  y = fully_connected(x, 1.3 MB of weights)
After:   y[channels 0 to 40] = fully_connected(x, 52 KB); y[channels 40 to 80] = fully_connected(x, 52 KB); …

Only for programs that fetch their constants. Output channels are the outermost loop of the array, so no cycle is lost but the
calls' own set-up.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from openneutron.compiler.l1 import ITEM_BYTES, Alias, KernelGraph, Node, Value
from openneutron.machine.targets import Target

# Without TCM: large enough that a copy's start-up vanishes (200 of 26,000 cycles), small beside any activation memory.
CHUNK_BYTES = 65_536
TCM_SHARE = 8  # with TCM: two pieces in flight take a quarter of it
_KERNELS = ("conv2d", "fully_connected", "conv2d16", "fully_connected16")


def _pieces(graph: KernelGraph, node: Node, target: Target) -> list[tuple[int, int]]:
    """Channel ranges [first, last) of the pieces; one range when the node stays whole."""
    channels = graph.values[node.output].shape[3]
    weights = node.operands[1]
    assert isinstance(weights, np.ndarray)
    groups = -(-channels // target.units)
    limit = target.tcm_bytes // TCM_SHARE if target.subsystem else CHUNK_BYTES
    step = max(limit // (weights.size // groups), 1) * target.units
    return [(first, min(first + step, channels)) for first in range(0, channels, step)]


def _piece(graph: KernelGraph, node: Node, target: Target, first: int, last: int) -> Node:
    value = graph.values[node.output]
    n, h, w, channels = value.shape
    item = ITEM_BYTES[value.dtype]
    place = value.alias or Alias(node.output, 0, h * w * channels * item, w * channels * item, channels * item)
    alias = place._replace(offset=place.offset + first * item)
    made = graph.add_value(
        Value(f"{value.name} channels {first} to {last}", (n, h, w, last - first), value.dtype, value.scale,
              value.zero_point, alias=alias)
    )  # fmt: skip
    weights, table = node.operands[1], node.operands[2]
    assert isinstance(weights, np.ndarray) and isinstance(table, np.ndarray)
    group = weights.size // -(-channels // target.units)
    start, stop = first // target.units, -(-last // target.units)
    padded = -(-channels // target.units) * target.units
    columns = table.reshape(-1, padded, 4)[:, start * target.units : stop * target.units]
    operands = list(node.operands)
    operands[1] = weights[start * group : stop * group]
    operands[2] = np.ascontiguousarray(columns).reshape(-1)
    operands[-1] = made
    macs = node.macs * (last - first) // channels
    return replace(node, operands=operands, output=made, macs=macs, notes=(*node.notes, "weights in pieces"))


def chunk_weights(graph: KernelGraph, target: Target) -> int:
    """Cut each plain convolution or fully connected layer whose weights exceed a chunk."""
    nodes: list[Node] = []
    acted = 0
    for node in graph.nodes:
        plain = node.kernel in _KERNELS and node.loop < 0 and not node.merge and getattr(node.params, "groups", 1) == 1
        pieces = _pieces(graph, node, target) if plain else [(0, 0)]
        if len(pieces) == 1:
            nodes.append(node)
            continue
        nodes += [_piece(graph, node, target, first, last) for first, last in pieces]
        acted += 1
    graph.nodes = nodes
    return acted
