"""ReplaceWhere: replaces a choice between two values by products with 0 and 1.

Before:  y = where(mask, a, b)             y = where(x > 0.5, a, 2.0)
After:   y = a * keep + b * drop           y = a * step(x) + table(x), steps being tables of x

The mask is a constant, or one comparison of a float tensor with a number or another tensor.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import add_constant, tensor_of
from openneutron.executorch.quantize.passes._insert import Insert

_CHOICES = frozenset(f"aten.where.{name}" for name in ("self", "ScalarOther", "ScalarSelf"))
COMPARISONS = ("gt", "ge", "lt", "le", "eq", "ne")


def replace_where(model: GraphModule) -> int:
    """Rewrite the graph in place; returns the number of rewritten nodes."""
    count = 0
    for node in list(model.graph.nodes):
        if operator_name(node) not in _CHOICES or not _is_float(node):
            continue
        given = arguments(node)
        mask = tensor_of(model, given["condition"])
        call = Insert(model, node)
        condition = given["condition"] if mask is not None else with_a_number(call, given["condition"])
        sides = [_side(model, given[name]) for name in ("self", "other")]
        if condition is None or any(side is None for side in sides) or all(_is_plain(side) for side in sides):
            continue
        parts = [_part(model, call, node, condition, mask, side, at == 0) for at, side in enumerate(sides)]
        kept = [part for part in parts if part is not None]
        made = kept[0] if len(kept) == 1 else call(torch.ops.aten.add.Tensor, *kept)
        node.replace_all_uses_with(made)
        model.graph.erase_node(node)
        count += 1
    return count


def with_a_number(call: Insert, condition: Any) -> Node | None:
    """Return the comparison as one with a number, None if the mask is no comparison of float tensors."""
    name = operator_name(condition) if isinstance(condition, Node) else ""
    operator, _, overload = name.removeprefix("aten.").partition(".")
    if operator not in COMPARISONS or not _is_float(condition.args[0]):
        return None
    if overload == "Scalar":
        return condition if isinstance(condition, Node) else None
    if overload != "Tensor" or not _is_float(condition.args[1]):
        return None
    apart = call(torch.ops.aten.sub.Tensor, condition.args[0], condition.args[1])
    return call(getattr(torch.ops.aten, operator).Scalar, apart, 0.0)


def _side(model: GraphModule, given: Any) -> Any:
    """Return a value to choose: a number, a constant tensor, or a node; None for what cannot be multiplied."""
    if isinstance(given, (int, float)):
        return float(given) if math.isfinite(given) else None
    data = tensor_of(model, given)
    if data is None:
        return given if _is_float(given) else None
    if not bool(torch.isfinite(data).all()):
        return None
    return float(data) if data.numel() == 1 else data.to(torch.float32)


def _is_plain(side: Any) -> bool:
    return not isinstance(side, Node)


def _part(
    model: GraphModule, call: Insert, node: Node, condition: Node, mask: torch.Tensor | None, side: Any, first: bool
) -> Node | None:
    """Insert the term that one side adds to the result; None for nothing."""
    if isinstance(side, float) and side == 0.0:
        return None
    one = side if isinstance(side, float) else 1.0
    if mask is not None:
        with model.graph.inserting_before(node):
            chosen = torch.where(mask, one, 0.0) if first else torch.where(mask, 0.0, one)
            factor = add_constant(model, "_chosen", chosen * side if isinstance(side, torch.Tensor) else chosen)
        return factor if _is_plain(side) else call(torch.ops.aten.mul.Tensor, side, factor)
    factor = call(torch.ops.aten.where.Scalar, condition, *((one, 0.0) if first else (0.0, one)))
    if isinstance(side, float):
        return factor
    if isinstance(side, torch.Tensor):
        with model.graph.inserting_before(node):
            side = add_constant(model, "_chosen", side)
    return call(torch.ops.aten.mul.Tensor, side, factor)


def _is_float(x: Any) -> bool:
    value = value_of(x) if isinstance(x, Node) else None
    return isinstance(value, torch.Tensor) and value.dtype == torch.float32
