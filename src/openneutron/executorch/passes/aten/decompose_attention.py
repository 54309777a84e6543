"""DecomposeAttention: scaled dot-product attention as the products and the softmax it stands for.

Before:  y = scaled_dot_product_attention(q, k, v)
After:   y = softmax(matmul(q * scale, transpose(k, -2, -1)), -1) @ v

Left whole, it would be decomposed after quantization and compute in float. One with a mask that is no constant, with
dropout or with fewer keys than queries stays: a mask of -inf has no place in INT8 (its range would leave no steps for
the scores), so it computes on the CPU.
"""

from __future__ import annotations

import math

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.passes.aten._attributes import tensor_of
from openneutron.executorch.passes.aten._insert import Insert

_ATTENTION = "aten.scaled_dot_product_attention.default"
# Adding a mask widens the range of scores by its own; beyond this the scores themselves would get too few of 256 steps.
_LARGEST_MASK = 16.0


def decompose_attention(model: GraphModule) -> int:
    """Rewrite in place; returns how many attentions went."""
    found = [node for node in model.graph.nodes if operator_name(node) == _ATTENTION and _decomposable(model, node)]
    for node in found:
        _decompose(model, node)
    return len(found)


def _decomposable(model: GraphModule, node: Node) -> bool:
    given = arguments(node)
    if given["dropout_p"] or given["is_causal"] or given.get("enable_gqa"):
        return False
    return given["attn_mask"] is None or _is_mild(model, given["attn_mask"])


def _is_mild(model: GraphModule, mask: Node) -> bool:
    data = tensor_of(model, mask)
    if data is None or data.dtype != torch.float32:
        return False
    return bool(torch.isfinite(data).all()) and float(data.abs().max()) <= _LARGEST_MASK


def _decompose(model: GraphModule, node: Node) -> None:
    given = arguments(node)
    call, aten = Insert(model, node), torch.ops.aten
    scale = given["scale"] if given["scale"] is not None else 1.0 / math.sqrt(value_of(given["query"]).shape[-1])
    query = call(aten.mul.Tensor, given["query"], float(scale))
    scores = call(aten.matmul.default, query, call(aten.transpose.int, given["key"], -2, -1))
    if given["attn_mask"] is not None:
        scores = call(aten.add.Tensor, scores, given["attn_mask"])
    weights = call(aten.softmax.int, scores, -1)
    node.replace_all_uses_with(call(aten.matmul.default, weights, given["value"]))
    model.graph.erase_node(node)
