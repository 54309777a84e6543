"""ReplaceIndex: rows picked by a constant list are slices where they lie evenly, else one selection.

Before:  y = x[:, [0, 2, 4]]               y = x[:, [3, 0, 1]]
After:   y = slice(x, 1, 0, 5, 2)          y = index_select(x, 1, [3, 0, 1])
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import add_constant, tensor_of
from openneutron.executorch.quantize.passes._insert import Insert

_INDEX, _SELECT = "aten.index.Tensor", "aten.index_select.default"


def replace_index(model: GraphModule) -> int:
    """Rewrite in place; returns how many went. Several index tensors, or ones computed at run time, stay."""
    count = 0
    for node in list(model.graph.nodes):
        if operator_name(node) not in (_INDEX, _SELECT) or value_of(node).dtype != torch.float32:
            continue
        x = node.args[0]
        dim, picked = _picked(model, node)
        if picked is None or not len(picked):
            continue
        made = _sliced(model, node, x, dim, picked)
        if made is None and operator_name(node) == _SELECT:
            continue
        if made is None:
            with model.graph.inserting_before(node):
                constant = add_constant(model, "_picked", torch.tensor(picked))
            constant.meta["val"] = value_of(node).new_empty(len(picked), dtype=torch.int64)
            made = Insert(model, node)(torch.ops.aten.index_select.default, x, dim, constant)
        node.replace_all_uses_with(made)
        model.graph.erase_node(node)
        count += 1
    return count


def _picked(model: GraphModule, node: Node) -> tuple[int, list[int] | None]:
    """The dimension and the positions along it that a constant names, counted from the front."""
    given = arguments(node)
    if operator_name(node) == _SELECT:
        dim, index = int(given["dim"]), given["index"]
    else:
        named = [(at, one) for at, one in enumerate(given["indices"]) if one is not None]
        if len(named) != 1:
            return 0, None
        dim, index = named[0]
    data: Any = tensor_of(model, index)
    if data is None or data.dim() != 1:
        return 0, None
    size = int(value_of(node.args[0]).shape[dim])
    if data.dtype == torch.bool:
        data = torch.nonzero(data).reshape(-1)
    return dim, [int(one) % size for one in data]


def _sliced(model: GraphModule, node: Node, x: Any, dim: int, picked: list[int]) -> Node | None:
    """The selection as a slice, None where the positions do not lie evenly."""
    step = picked[1] - picked[0] if len(picked) > 1 else 1
    if step < 1 or picked != list(range(picked[0], picked[-1] + 1, step)):
        return None
    return Insert(model, node)(torch.ops.aten.slice.Tensor, x, dim, picked[0], picked[-1] + 1, step)
