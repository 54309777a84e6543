"""ReplaceWhere: replaces a choice between two values by products with 0 and 1.

Before:  y = where(mask, a, b)             y = where(x > 0.5, a, 2.0)
After:   y = a * keep + b * drop           y = a * step(x) + table(x), steps being tables of x

The mask is a constant, a comparison of a float tensor with a number or another tensor, or several of these joined by and, or,
xor and not (`_booleans.py`).
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import add_constant, tensor_of
from openneutron.executorch.quantize.passes._booleans import (
    as_number,
    is_comparison,
    is_float,
    is_made_of_comparisons,
    with_a_number,
)
from openneutron.executorch.quantize.passes._insert import CHOICE_KEY, Insert

_OF_NUMBERS = "aten.where.Scalar"
_CHOICES = frozenset(f"aten.where.{name}" for name in ("self", "ScalarOther", "ScalarSelf"))


def replace_where(model: GraphModule) -> int:
    """Rewrite the graph in place; returns the number of rewritten nodes."""
    count = 0
    for node in list(model.graph.nodes):
        if operator_name(node) == _OF_NUMBERS:
            count += _of_numbers(model, node)
        if operator_name(node) not in _CHOICES or not is_float(node):
            continue
        given = arguments(node)
        mask = tensor_of(model, given["condition"])
        call = Insert(model, node)
        sides = [_side(model, given[name]) for name in ("self", "other")]
        if any(side is None for side in sides) or all(_is_plain(side) for side in sides):
            continue
        condition = given["condition"]
        if mask is None and not is_made_of_comparisons(model, condition):
            continue
        if mask is None:
            condition = with_a_number(call, condition) or condition
        parts = [_part(model, call, node, condition, mask, side, at == 0) for at, side in enumerate(sides)]
        kept = [part for part in parts if part is not None]
        made = kept[0] if len(kept) == 1 else call(torch.ops.aten.add.Tensor, *kept)
        if _decides_all(condition) and len(kept) == 2 and not any(isinstance(side, float) for side in sides):
            for one in (*kept, made):
                one.meta[CHOICE_KEY] = True
        node.replace_all_uses_with(made)
        model.graph.erase_node(node)
        count += 1
    return count


def _decides_all(condition: Node) -> bool:
    """Return whether one element takes one side as a whole: calibration may never take the other."""
    value = value_of(condition)
    return isinstance(value, torch.Tensor) and value.numel() == 1


def _of_numbers(model: GraphModule, node: Node) -> int:
    """Rewrite a choice between two numbers by several comparisons; one by a single comparison is a table."""
    condition, yes, no = (arguments(node)[name] for name in ("condition", "self", "other"))
    if is_comparison(condition) or not is_made_of_comparisons(model, condition) or not math.isfinite(yes - no):
        return 0
    call = Insert(model, node)
    made = call(torch.ops.aten.mul.Tensor, as_number(model, call, condition), float(yes - no))
    node.replace_all_uses_with(call(torch.ops.aten.add.Tensor, made, float(no)) if no else made)
    model.graph.erase_node(node)
    return 1


def _side(model: GraphModule, given: Any) -> Any:
    """Return a value to choose: a number, a constant tensor, or a node; None for what cannot be multiplied."""
    if isinstance(given, (int, float)):
        return float(given) if math.isfinite(given) else None
    data = tensor_of(model, given)
    if data is None:
        return given if is_float(given) else None
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
    if is_comparison(condition):
        factor = call(torch.ops.aten.where.Scalar, condition, *((one, 0.0) if first else (0.0, one)))
    else:
        factor = as_number(model, call, condition, negated=not first)
        factor = factor if one == 1.0 else call(torch.ops.aten.mul.Tensor, factor, one)
    if isinstance(side, float):
        return factor
    if isinstance(side, torch.Tensor):
        with model.graph.inserting_before(node):
            side = add_constant(model, "_chosen", side)
    return call(torch.ops.aten.mul.Tensor, side, factor)
