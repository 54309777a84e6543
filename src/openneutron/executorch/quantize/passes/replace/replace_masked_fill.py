"""ReplaceMaskedFill: replaces masked-out attention scores by -16, with products and sums, as in DecomposeAttention.

Before:  y = softmax(masked_fill(x, mask, -inf), -1)       y = softmax(where(mask, x, -1e9), -1)
After:   y = softmax(x * keep + bias, -1)                  y = softmax(x * keep + bias, -1)

Only if nothing but a softmax over the last dimension reads the result: INT8 cannot represent minus infinity, and -16 gives
the same probabilities. A masked_fill with a finite number is rewritten for any reader.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import add_constant, tensor_of
from openneutron.executorch.quantize.passes._insert import Insert
from openneutron.executorch.quantize.passes._masks import (
    FORBIDDEN,
    NEVER,
    apply_mask,
    following_mask,
    only_softmax_reads,
    replace_scores,
)

_FILLS = frozenset({"aten.masked_fill.Scalar", "aten.masked_fill_.Scalar"})
_CHOICES = frozenset(f"aten.where.{name}" for name in ("self", "ScalarOther", "ScalarSelf"))


def replace_masked_fill(model: GraphModule) -> int:
    """Rewrite the graph in place; returns the number of rewritten nodes."""
    count = 0
    for node in list(model.graph.nodes):
        if operator_name(node) not in (*_FILLS, *_CHOICES) or value_of(node).dtype != torch.float32:
            continue
        x, mask, number, when = _fill_arguments(model, node)
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
        made = call(torch.ops.aten.add.Tensor, kept, bias) if number else kept
        if number == FORBIDDEN and only_softmax_reads(node):
            replace_scores(model, node, made)
        else:
            node.replace_all_uses_with(made)
            model.graph.erase_node(node)
        count += 1
    return count


def replace_large_masked_fill(model: GraphModule) -> int:
    """Rewrite what a check restored: forbidden scores depend on their row, and minus infinity leaves exact zeros."""
    count = 0
    for node in list(model.graph.nodes):
        if operator_name(node) not in (*_FILLS, *_CHOICES) or value_of(node).dtype != torch.float32:
            continue
        x, mask, number, when = _fill_arguments(model, node)
        if not number <= NEVER or not only_softmax_reads(node) or _is_constant(model, x):
            continue
        call = Insert(model, node)
        data = tensor_of(model, mask)
        if data is not None:
            allowed: Node | torch.Tensor = ~data if when else data
        else:
            allowed = call(torch.ops.aten.logical_not.default, mask) if when else mask
        parts = following_mask(model, call, allowed)
        replace_scores(model, node, apply_mask(call, x, parts), parts.keep if number == -math.inf else None)
        count += 1
    return count


def _fill_arguments(model: GraphModule, node: Node) -> tuple[Any, Node, float, bool]:
    """Return the kept value, the mask, the fill number, and whether the number is used where the mask is true."""
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
    """Return a side of a choice as one number, None for any other."""
    if isinstance(side, (int, float)):
        return float(side)
    data = tensor_of(model, side)
    return float(data) if data is not None and data.numel() == 1 else None


def _is_constant(model: GraphModule, node: Any) -> bool:
    return isinstance(node, Node) and tensor_of(model, node) is not None


def _parts(model: GraphModule, call: Insert, node: Node, mask: Node, number: float, when: bool) -> tuple[Node, Node]:
    """Return the factor and the addend, with the number at the positions where the mask equals `when`."""
    data = tensor_of(model, mask)
    keep, bias = ((0.0, 1.0), (number, 0.0)) if when else ((1.0, 0.0), (0.0, number))
    if data is None:
        where = torch.ops.aten.where.Scalar
        return call(where, mask, *keep), call(where, mask, *bias)
    with model.graph.inserting_before(node):
        kept = add_constant(model, "_allowed", torch.where(data, *keep))
        return kept, add_constant(model, "_mask", torch.where(data, *bias))
