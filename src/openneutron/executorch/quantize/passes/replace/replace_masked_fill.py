"""ReplaceMaskedFill: scores that a mask forbids become -16 by products and sums, as in DecomposeAttention.

Before:  y = softmax(masked_fill(x, mask, -inf), -1)
After:   y = softmax(x * keep + bias, -1)

Only where nothing but a softmax over the last dimension reads the result: minus infinity has no place in INT8, and there
-16 is as good. A finite number takes the place of what the mask names for any reader.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import add_constant, tensor_of
from openneutron.executorch.quantize.passes._insert import Insert
from openneutron.executorch.quantize.passes.decompose.decompose_attention import FORBIDDEN

_FILLS = frozenset({"aten.masked_fill.Scalar", "aten.masked_fill_.Scalar"})
_SOFTMAX = frozenset({"aten.softmax.int", "aten._softmax.default"})


def replace_masked_fill(model: GraphModule) -> int:
    """Rewrite in place; returns how many went."""
    count = 0
    for node in list(model.graph.nodes):
        if operator_name(node) not in _FILLS or value_of(node).dtype != torch.float32:
            continue
        given = arguments(node)
        number = float(given["value"])
        if number <= FORBIDDEN:
            if not all(_is_softmax(user) for user in node.users):
                continue
            number = FORBIDDEN
        if not math.isfinite(number) or _is_constant(model, given["self"]):
            continue
        call = Insert(model, node)
        keep, bias = _parts(model, call, node, given["mask"], number)
        kept = call(torch.ops.aten.mul.Tensor, given["self"], keep)
        node.replace_all_uses_with(call(torch.ops.aten.add.Tensor, kept, bias) if number else kept)
        model.graph.erase_node(node)
        count += 1
    return count


def _is_softmax(node: Node) -> bool:
    if operator_name(node) not in _SOFTMAX:
        return False
    return bool(arguments(node)["dim"] in (-1, len(value_of(node).shape) - 1))


def _is_constant(model: GraphModule, node: Any) -> bool:
    return isinstance(node, Node) and tensor_of(model, node) is not None


def _parts(model: GraphModule, call: Insert, node: Node, mask: Node, number: float) -> tuple[Node, Node]:
    """What to multiply by and what to add."""
    data = tensor_of(model, mask)
    if data is None:
        where = torch.ops.aten.where.Scalar
        return call(where, mask, 0.0, 1.0), call(where, mask, number, 0.0)
    with model.graph.inserting_before(node):
        keep = add_constant(model, "_allowed", torch.where(data, 0.0, 1.0))
        return keep, add_constant(model, "_mask", torch.where(data, number, 0.0))
