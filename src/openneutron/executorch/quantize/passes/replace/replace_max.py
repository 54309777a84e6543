"""ReplaceMax: splits operators that give maxima and their positions into operators that give one of the two.

Before:  y, i = max(x, dim)                     y = adaptive_max_pool2d(x, [1, 1])[0]    i = argmax(x)
After:   y = amax(x, [dim]); i = argmax(x, dim) y = amax(x, [-2, -1], keepdim)           i = argmax(reshape(x, [1, -1]), 1)

Adaptive pooling over windows of one size becomes max pooling, over others the maximum of each window. Poolings whose
positions are read are left unchanged.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import GETITEM, arguments, is_static, operator_name, value_of
from openneutron.executorch.quantize.passes._insert import Insert

_aten: Any = torch.ops.aten
_REDUCTIONS = {
    "aten.max.dim": (_aten.amax.default, _aten.argmax.default),
    "aten.min.dim": (_aten.amin.default, _aten.argmin.default),
}
_POOLS = {
    "aten.adaptive_max_pool1d.default": _aten.max_pool1d.default,
    "aten.adaptive_max_pool2d.default": _aten.max_pool2d.default,
    "aten.adaptive_max_pool3d.default": _aten.max_pool3d.default,
}
_POSITIONS = frozenset({"aten.argmax.default", "aten.argmin.default"})


def replace_max(model: GraphModule) -> int:
    """Rewrite the graph in place; returns the number of rewritten nodes."""
    count = 0
    for node in list(model.graph.nodes):
        name = operator_name(node)
        if name in _POSITIONS and is_static(node):
            count += _position(model, node)
        elif (name in _POOLS or name in _REDUCTIONS) and is_static(node):
            results = _as_pooling(model, node) if name in _POOLS else _as_reductions(model, node)
            if results is None:
                continue
            for user in list(node.users):
                user.replace_all_uses_with(results[user.args[1]])  # type: ignore[index]
                model.graph.erase_node(user)
            model.graph.erase_node(node)
            count += 1
    return count


def _position(model: GraphModule, node: Node) -> int:
    """Rewrite positions along one dimension without that dimension, as the NPU gives them; integers are reshaped afterwards."""
    given, call = arguments(node), Insert(model, node)
    x, dim, shape = given["self"], given["dim"], list(value_of(node).shape)
    if dim is None:
        found = call(node.target, call(_aten.reshape.default, x, [1, -1]), 1)
    elif given["keepdim"]:
        found = call(node.target, x, dim)
    else:
        return 0
    node.replace_all_uses_with(call(_aten.reshape.default, found, shape))
    model.graph.erase_node(node)
    return 1


def _reads(node: Node, result: int) -> bool:
    return any(operator_name(user) == GETITEM and user.args[1] == result and user.users for user in node.users)


def _as_reductions(model: GraphModule, node: Node) -> dict[int, Node]:
    given, call = arguments(node), Insert(model, node)
    largest, position = _REDUCTIONS[operator_name(node)]
    x, dim, keep = given["self"], given["dim"], given["keepdim"]
    made = {0: call(largest, x, [dim], keep)}
    made[1] = made[0]
    if _reads(node, 1):
        found = call(position, x, dim)
        made[1] = call(_aten.unsqueeze.default, found, dim) if keep else found
    return made


def _as_pooling(model: GraphModule, node: Node) -> dict[int, Node] | None:
    if _reads(node, 1):
        return None
    call, given = Insert(model, node), arguments(node)
    x, rank = given["self"], len(given["output_size"])
    sizes, out = value_of(x).shape[-rank:], value_of(node)[0].shape[-rank:]
    if all(one == 1 for one in out):
        made = call(_aten.amax.default, x, list(range(-rank, 0)), True)
    elif not any(size % wanted for size, wanted in zip(sizes, out, strict=True)):
        window = [size // wanted for size, wanted in zip(sizes, out, strict=True)]
        made = call(_POOLS[operator_name(node)], x, window, window)
    else:
        made = x
        for axis, (size, wanted) in enumerate(zip(sizes, out, strict=True)):
            made = _windows(call, made, axis - rank, size, wanted)
    return dict.fromkeys((0, 1), made)


def _windows(call: Insert, x: Node, dim: int, size: int, wanted: int) -> Node:
    """Return the maximum of each of PyTorch's adaptive windows along one dimension."""
    parts = []
    for index in range(wanted):
        first, end = index * size // wanted, -(-(index + 1) * size // wanted)
        parts.append(call(_aten.amax.default, call(_aten.slice.Tensor, x, dim, first, end), [dim], True))
    return call(_aten.cat.default, parts, dim) if wanted > 1 else parts[0]
