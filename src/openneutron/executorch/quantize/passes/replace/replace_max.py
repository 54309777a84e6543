"""ReplaceMax: maxima whose positions nobody reads become operators that give no positions.

Before:  y = max(x, dim)[0]            y = adaptive_max_pool2d(x, [1, 1])[0]    y = adaptive_max_pool2d(x, [2, 2])[0]
After:   y = amax(x, [dim])            y = amax(x, [-2, -1], keepdim)           y = max_pool2d(x, size / 2)
"""

from __future__ import annotations

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import GETITEM, arguments, is_static, operator_name, value_of
from openneutron.executorch.quantize.passes._insert import Insert

_REDUCTIONS = {"aten.max.dim": torch.ops.aten.amax.default, "aten.min.dim": torch.ops.aten.amin.default}
_POOL = "aten.adaptive_max_pool2d.default"


def replace_max(model: GraphModule) -> int:
    """Rewrite in place; returns how many went. Adaptive pooling stays where sizes do not divide."""
    count = 0
    for node in list(model.graph.nodes):
        if operator_name(node) not in (*_REDUCTIONS, _POOL) or not _reads_values_only(node) or not is_static(node):
            continue
        made = _pooled(model, node) if operator_name(node) == _POOL else _reduced(model, node)
        if made is None:
            continue
        for user in list(node.users):
            user.replace_all_uses_with(made)
            model.graph.erase_node(user)
        model.graph.erase_node(node)
        count += 1
    return count


def _reads_values_only(node: Node) -> bool:
    return all(operator_name(user) == GETITEM and (user.args[1] == 0 or not user.users) for user in node.users)


def _reduced(model: GraphModule, node: Node) -> Node:
    given = arguments(node)
    return Insert(model, node)(_REDUCTIONS[operator_name(node)], given["self"], [given["dim"]], given["keepdim"])


def _pooled(model: GraphModule, node: Node) -> Node | None:
    call, aten = Insert(model, node), torch.ops.aten
    x = arguments(node)["self"]
    sizes, out = value_of(x).shape[-2:], value_of(node)[0].shape[-2:]
    if tuple(out) == (1, 1):
        return call(aten.amax.default, x, [-2, -1], True)
    if any(size % wanted for size, wanted in zip(sizes, out, strict=True)):
        return None
    window = [size // wanted for size, wanted in zip(sizes, out, strict=True)]
    return call(aten.max_pool2d.default, x, window, window)
