"""DecomposeAttention: decomposes scaled dot-product attention into matrix products and a softmax.

Before:  y = scaled_dot_product_attention(q, k, v, mask)
After:   y = softmax(matmul(q * scale, transpose(k, -2, -1)) * keep + bias, -1) @ v

Left whole, it would be decomposed after quantization and computed in float. A score that the mask forbids is replaced by
-16 (keep is 0, bias is -16) instead of minus infinity, which INT8 cannot represent. A mask that is computed at run time
becomes keep and bias on the CPU. Attention with dropout is left unchanged.
"""

from __future__ import annotations

import math

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import tensor_of
from openneutron.executorch.quantize.passes._insert import Insert
from openneutron.executorch.quantize.passes._masks import apply_mask, computed_mask, constant_mask, following_mask

_ATTENTION = "aten.scaled_dot_product_attention.default"


def decompose_attention(model: GraphModule) -> int:
    """Rewrite the graph in place; returns the number of rewritten attentions."""
    found = [node for node in model.graph.nodes if operator_name(node) == _ATTENTION and not _has_dropout(node)]
    for node in found:
        _decompose(model, node)
    return len(found)


def decompose_large_attention(model: GraphModule) -> int:
    """Rewrite attention that a check restored: forbidden scores depend on their row, and rows without allowed scores
    become 0.
    """
    found = [node for node in model.graph.nodes if operator_name(node) == _ATTENTION and not _has_dropout(node)]
    for node in found:
        _decompose(model, node, follow=True)
    return len(found)


def _has_dropout(node: Node) -> bool:
    return bool(arguments(node)["dropout_p"])


def _decompose(model: GraphModule, node: Node, *, follow: bool = False) -> None:
    given = arguments(node)
    call, aten = Insert(model, node), torch.ops.aten
    scale = given["scale"] if given["scale"] is not None else 1.0 / math.sqrt(value_of(given["query"]).shape[-1])
    heads = value_of(given["query"]).shape[-3] if given.get("enable_gqa") else 0
    key, value = (_repeat_heads(call, given[name], heads) if heads else given[name] for name in ("key", "value"))
    query = call(aten.mul.Tensor, given["query"], float(scale))
    scores = call(aten.matmul.default, query, call(aten.transpose.int, key, -2, -1))
    masks: list[Node | torch.Tensor] = []
    if given["is_causal"]:
        masks.append(torch.ones(tuple(int(size) for size in value_of(scores).shape[-2:]), dtype=torch.bool).tril())
    if given["attn_mask"] is not None:
        data = tensor_of(model, given["attn_mask"])
        masks.append(given["attn_mask"] if data is None else data)
    keeps: list[Node] = []
    for one in masks:
        if follow:
            mask = following_mask(model, call, one)
            keeps += [mask.keep] if mask.keep is not None else []
        else:
            mask = constant_mask(model, node, one) if isinstance(one, torch.Tensor) else computed_mask(call, one)
        scores = apply_mask(call, scores, mask)
    weights = call(aten.softmax.int, scores, -1)
    for keep in keeps:
        weights = call(aten.mul.Tensor, weights, keep)
    node.replace_all_uses_with(call(aten.matmul.default, weights, value))
    model.graph.erase_node(node)


def _repeat_heads(call: Insert, x: Node, heads: int) -> Node:
    """Repeat keys or values in place, if one of their heads serves several heads of the query."""
    aten = torch.ops.aten
    *batch, own, length, width = value_of(x).shape
    if own == heads:
        return x
    wide = call(aten.unsqueeze.default, x, -3)
    wide = call(aten.expand.default, wide, [*batch, own, heads // own, length, width])
    return call(aten.reshape.default, wide, [*batch, heads, length, width])
