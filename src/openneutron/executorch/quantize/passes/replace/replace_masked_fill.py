"""ReplaceMaskedFill: scores that a mask forbids become -16 by products and sums, as in DecomposeAttention.

Before:  y = softmax(masked_fill(x, mask, -inf), -1)       y = softmax(where(mask, x, -1e9), -1)
After:   y = softmax(x * keep + bias, -1)                  y = softmax(x * keep + bias, -1)

Only where nothing but a softmax over the last dimension reads the result: minus infinity has no place in INT8, and there
-16 is as good. A finite number takes the place of what the mask of a masked_fill names for any reader.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import add_constant, tensor_of
from openneutron.executorch.quantize.passes._insert import Insert
from openneutron.executorch.quantize.passes._masks import FORBIDDEN, only_softmax_reads

_FILLS = frozenset({"aten.masked_fill.Scalar", "aten.masked_fill_.Scalar"})
_CHOICES = frozenset(f"aten.where.{name}" for name in ("self", "ScalarOther", "ScalarSelf"))


def replace_masked_fill(model: GraphModule) -> int:
    """Rewrite in place; returns how many went."""
    count = 0
    for node in list(model.graph.nodes):
        if operator_name(node) not in (*_FILLS, *_CHOICES) or value_of(node).dtype != torch.float32:
            continue
        x, mask, number, when = _filled(model, node)
        if number <= FORBIDDEN:
            if not only_softmax_reads(node):
                continue
            number = FORBIDDEN
        elif operator_name(node) in _CHOICES:
            continue
        if not math.isfinite(number) or _is_constant(model, x):
            continue
        call = Insert(model, node)
        keep, bias = _parts(model, call, node, mask, number, when)
        kept = call(torch.ops.aten.mul.Tensor, x, keep)
        node.replace_all_uses_with(call(torch.ops.aten.add.Tensor, kept, bias) if number else kept)
        model.graph.erase_node(node)
        count += 1
    return count


def _filled(model: GraphModule, node: Node) -> tuple[Any, Node, float, bool]:
    """What is kept, the mask, the number that takes its place, and whether it does where the mask is true."""
    given = arguments(node)
    if operator_name(node) in _FILLS:
        return given["self"], given["mask"], float(given["value"]), True
    sides = [_number(model, given[name]) for name in ("self", "other")]
    when = sides[0] is not None
    number = sides[0] if when else sides[1]
    kept = given["other" if when else "self"]
    usable = number is not None and isinstance(kept, Node)
    return kept, given["condition"], number if usable and number is not None else math.nan, when


def _number(model: GraphModule, side: Any) -> float | None:
    """A side of a choice that is one number, None for any other."""
    if isinstance(side, (int, float)):
        return float(side)
    data = tensor_of(model, side)
    return float(data) if data is not None and data.numel() == 1 else None


def _is_constant(model: GraphModule, node: Any) -> bool:
    return isinstance(node, Node) and tensor_of(model, node) is not None


def _parts(model: GraphModule, call: Insert, node: Node, mask: Node, number: float, when: bool) -> tuple[Node, Node]:
    """What to multiply by and what to add, where the number stands `when` the mask is so."""
    data = tensor_of(model, mask)
    keep, bias = ((0.0, 1.0), (number, 0.0)) if when else ((1.0, 0.0), (0.0, number))
    if data is None:
        where = torch.ops.aten.where.Scalar
        return call(where, mask, *keep), call(where, mask, *bias)
    with model.graph.inserting_before(node):
        kept = add_constant(model, "_allowed", torch.where(data, *keep))
        return kept, add_constant(model, "_mask", torch.where(data, *bias))
