"""ReplaceRoll: replaces a roll by slices that are concatenated in another order.

Before:  y = roll(x, 1, dim)
After:   y = cat([x[-1:], x[:-1]], dim)
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.passes._insert import Insert


def replace_roll(model: GraphModule) -> int:
    """Rewrite the graph in place; returns the number of rewritten nodes. A roll of the flattened tensor stays."""
    count = 0
    for node in list(model.graph.nodes):
        given = arguments(node) if operator_name(node) == "aten.roll.default" else {}
        if not given.get("dims"):
            continue
        made = _as_pieces(Insert(model, node), given["self"], given["shifts"], given["dims"])
        node.replace_all_uses_with(made)
        model.graph.erase_node(node)
        count += 1
    return count


def _as_pieces(call: Insert, x: Node, shifts: Sequence[int], dims: Sequence[int]) -> Node:
    for shift, dim in zip(shifts, dims, strict=True):
        size = int(value_of(x).shape[dim])
        first = -shift % size
        if first:
            x = call(torch.ops.aten.cat.default, [_cut(call, x, dim, first, size), _cut(call, x, dim, 0, first)], dim)
    return x


def _cut(call: Insert, x: Node, dim: int, first: int, last: int) -> Node:
    return call(torch.ops.aten.slice.Tensor, x, dim, first, last)
