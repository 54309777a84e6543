"""SplitToSlices: replaces the parts of a split by slices, which can be quantized one by one.

Before:  a, b = chunk(x, 2, dim=1)                 s, t = unbind(x, 1)
After:   a = slice(x, 1, 0, 4); b = slice(x, 1, 4, 8)   s = select(x, 1, 0); t = select(x, 1, 1)
"""

from __future__ import annotations

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import GETITEM, arguments, operator_name, value_of
from openneutron.executorch.quantize.passes._insert import stable_name

_SPLITS = frozenset(
    {
        "aten.split.Tensor",
        "aten.split.sizes",
        "aten.split_with_sizes.default",
        "aten.chunk.default",
        "aten.tensor_split.sections",
        "aten.unbind.int",
    }
)


def split_to_slices(model: GraphModule) -> int:
    """Rewrite in place; returns the number of rewritten splits.

    A split whose list is used as a whole is left unchanged.
    """
    count = 0
    for node in list(model.graph.nodes):
        if operator_name(node) not in _SPLITS or any(operator_name(user) != GETITEM for user in node.users):
            continue
        x = node.args[0]
        dim = int(arguments(node)["dim"]) % value_of(x).dim()
        starts = _starts(node, dim)
        for user in list(node.users):
            index = user.args[1] % len(value_of(node))
            with model.graph.inserting_before(user):
                part = _part(model, node, x, dim, index, starts)
            part.meta = {**user.meta, **{k: v for k, v in node.meta.items() if k != "val"}, "val": user.meta["val"]}
            user.replace_all_uses_with(part)
            model.graph.erase_node(user)
        model.graph.erase_node(node)
        count += 1
    return count


def _starts(node: Node, dim: int) -> list[int]:
    """Return where each part begins along `dim`."""
    starts = [0]
    for part in value_of(node):
        starts.append(starts[-1] + (part.shape[dim] if operator_name(node) != "aten.unbind.int" else 1))
    return starts


def _part(model: GraphModule, node: Node, x: Node, dim: int, index: int, starts: list[int]) -> Node:
    name = stable_name(node, f"part{index}")
    if operator_name(node) == "aten.unbind.int":
        return model.graph.create_node("call_function", torch.ops.aten.select.int, (x, dim, index), name=name)
    ends = starts[index], starts[index + 1]
    return model.graph.create_node("call_function", torch.ops.aten.slice.Tensor, (x, dim, *ends), name=name)
