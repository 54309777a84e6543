"""ReplaceRoll: what wraps around is cut in pieces and put together again.

Before:  y = roll(x, 1, dim)                               y = pad(x, [1, 1], mode="circular")
After:   y = cat([x[-1:], x[:-1]], dim)                    y = cat([x[-1:], x, x[:1]], dim)
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.passes._insert import Insert

_ROLL, _PAD = "aten.roll.default", "aten.pad.default"


def replace_roll(model: GraphModule) -> int:
    """Rewrite in place; returns how many went. A roll of the flattened tensor stays."""
    count = 0
    for node in list(model.graph.nodes):
        given = arguments(node) if operator_name(node) in (_ROLL, _PAD) else {}
        if operator_name(node) == _ROLL and given["dims"]:
            made = _rolled(Insert(model, node), given["self"], given["shifts"], given["dims"])
        elif operator_name(node) == _PAD and given["mode"] == "circular" and min(given["pad"]) >= 0:
            made = _wrapped(Insert(model, node), given["self"], given["pad"])
        else:
            continue
        node.replace_all_uses_with(made)
        model.graph.erase_node(node)
        count += 1
    return count


def _rolled(call: Insert, x: Node, shifts: Sequence[int], dims: Sequence[int]) -> Node:
    for shift, dim in zip(shifts, dims, strict=True):
        size = int(value_of(x).shape[dim])
        first = -shift % size
        if first:
            x = call(torch.ops.aten.cat.default, [_cut(call, x, dim, first, size), _cut(call, x, dim, 0, first)], dim)
    return x


def _wrapped(call: Insert, x: Node, pads: Sequence[int]) -> Node:
    rank = value_of(x).dim()
    for position in range(0, len(pads), 2):
        dim = rank - 1 - position // 2
        before, after = pads[position], pads[position + 1]
        size = int(value_of(x).shape[dim])
        parts = [_cut(call, x, dim, size - before, size)] if before else []
        parts += [x, *([_cut(call, x, dim, 0, after)] if after else [])]
        if len(parts) > 1:
            x = call(torch.ops.aten.cat.default, parts, dim)
    return x


def _cut(call: Insert, x: Node, dim: int, first: int, last: int) -> Node:
    return call(torch.ops.aten.slice.Tensor, x, dim, first, last)
