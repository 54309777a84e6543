"""DecomposeGroupNorm: turns group and instance normalisation into a layer norm over each group.

Before:  y = group_norm(x, groups, g, b, eps)
After:   y = layer_norm(x.reshape(n, groups, -1)).reshape(x.shape) * g + b

An instance norm that computes its own statistics has one group per channel; one with running statistics is a batch norm.
DecomposeLayerNorm and DecomposeBatchNorm rewrite the results further.
"""

from __future__ import annotations

from math import prod

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, is_static, operator_name, value_of
from openneutron.executorch.quantize.passes._insert import Insert

_GROUP, _INSTANCE = "aten.group_norm.default", "aten.instance_norm.default"


def decompose_group_norm(model: GraphModule) -> int:
    """Rewrite the graph in place; returns the number of rewritten norms."""
    found = [node for node in model.graph.nodes if _is_norm(node)]
    for node in found:
        _decompose(model, node)
    return len(found)


def _is_norm(node: Node) -> bool:
    name = operator_name(node)
    if name not in (_GROUP, _INSTANCE) or not is_static(node) or value_of(node).dtype != torch.float32:
        return False
    return name == _GROUP or bool(arguments(node)["use_input_stats"]) or arguments(node)["running_mean"] is not None


def _decompose(model: GraphModule, node: Node) -> None:
    given = arguments(node)
    call, aten = Insert(model, node), torch.ops.aten
    if operator_name(node) == _INSTANCE and not given["use_input_stats"]:
        kept = [given[name] for name in ("input", "weight", "bias", "running_mean", "running_var")]
        node.replace_all_uses_with(call(aten.batch_norm.default, *kept, False, 0.0, float(given["eps"]), False))
        model.graph.erase_node(node)
        return
    shape = [int(size) for size in value_of(given["input"]).shape]
    groups = shape[1] if operator_name(node) == _INSTANCE else int(given["num_groups"])
    size = prod(shape[1:]) // groups
    rows = call(aten.reshape.default, given["input"], [shape[0], groups, size])
    result = call(aten.layer_norm.default, rows, [size], None, None, float(given["eps"]))
    result = call(aten.reshape.default, result, shape)
    for operator, name in ((aten.mul.Tensor, "weight"), (aten.add.Tensor, "bias")):
        if given[name] is not None:
            each = call(aten.reshape.default, given[name], [1, shape[1], *[1] * (len(shape) - 2)])
            result = call(operator, result, each)
    node.replace_all_uses_with(result)
    model.graph.erase_node(node)
