"""DecomposeAttention: scaled dot-product attention as the products and the softmax it stands for.

Before:  y = scaled_dot_product_attention(q, k, v, mask)
After:   y = softmax(matmul(q * scale, transpose(k, -2, -1)) * keep + bias, -1) @ v

Left whole, it would be decomposed after quantization and compute in float. A score that the mask forbids is replaced by
-16 (keep is 0, bias is -16) instead of minus infinity, which has no place in INT8. A mask that is computed at run time
becomes keep and bias on the CPU. Attention with dropout stays.
"""

from __future__ import annotations

import math

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import tensor_of
from openneutron.executorch.quantize.passes._insert import Insert
from openneutron.executorch.quantize.passes._masks import computed_mask, constant_mask, masked

_ATTENTION = "aten.scaled_dot_product_attention.default"


def decompose_attention(model: GraphModule) -> int:
    """Rewrite in place; returns how many attentions went."""
    found = [node for node in model.graph.nodes if operator_name(node) == _ATTENTION and not _has_dropout(node)]
    for node in found:
        _decompose(model, node)
    return len(found)


def _has_dropout(node: Node) -> bool:
    return bool(arguments(node)["dropout_p"])


def _decompose(model: GraphModule, node: Node) -> None:
    given = arguments(node)
    call, aten = Insert(model, node), torch.ops.aten
    scale = given["scale"] if given["scale"] is not None else 1.0 / math.sqrt(value_of(given["query"]).shape[-1])
    heads = value_of(given["query"]).shape[-3] if given.get("enable_gqa") else 0
    key, value = (_repeated(call, given[name], heads) if heads else given[name] for name in ("key", "value"))
    query = call(aten.mul.Tensor, given["query"], float(scale))
    scores = call(aten.matmul.default, query, call(aten.transpose.int, key, -2, -1))
    if given["is_causal"]:
        allowed = torch.ones(tuple(int(size) for size in value_of(scores).shape[-2:]), dtype=torch.bool).tril()
        scores = masked(call, scores, *constant_mask(model, node, allowed))
    if given["attn_mask"] is not None:
        data = tensor_of(model, given["attn_mask"])
        mask = computed_mask(call, given["attn_mask"]) if data is None else constant_mask(model, node, data)
        scores = masked(call, scores, *mask)
    weights = call(aten.softmax.int, scores, -1)
    node.replace_all_uses_with(call(aten.matmul.default, weights, value))
    model.graph.erase_node(node)


def _repeated(call: Insert, x: Node, heads: int) -> Node:
    """Keys or values whose heads serve several of the query's: each repeated in place."""
    aten = torch.ops.aten
    *batch, own, length, width = value_of(x).shape
    if own == heads:
        return x
    wide = call(aten.unsqueeze.default, x, -3)
    wide = call(aten.expand.default, wide, [*batch, own, heads // own, length, width])
    return call(aten.reshape.default, wide, [*batch, heads, length, width])
