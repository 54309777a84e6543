"""ReplaceAdditiveMask: replaces an additive attention mask of minus infinity, -1e9 or the like by a form for INT8.

Before:  y = softmax(scores + mask, -1)                mask = zeros.masked_fill(padding, -inf), (1 - m) * -1e4, a constant
After:   y = softmax(scores * keep + bias, -1)         keep = where(allowed, 1, 0), bias = where(allowed, 0, -16)

A range that reaches to -1e9 would leave a single step for the scores. A mask that is computed at run time is traced back to
the booleans that it is made from, so that it is never stored as a number that is not finite. The mask of
`scaled_dot_product_attention` is replaced by such booleans.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.check.keep_float import mark_float
from openneutron.executorch.quantize.passes._attributes import add_constant, tensor_of
from openneutron.executorch.quantize.passes._insert import Insert, is_zero
from openneutron.executorch.quantize.passes._lookups import lookup_of
from openneutron.executorch.quantize.passes._masks import (
    FORBIDDEN,
    NEVER,
    Mask,
    apply_mask,
    computed_mask,
    constant_mask,
    following_mask,
    only_softmax_reads,
    replace_scores,
)
from openneutron.executorch.quantize.passes._ranges import seen_lowest

# A constant with values this low is a mask, or a distance whose far end weighs nothing; a trained bias is neither.
_LOW = -50.0
# Threshold between the two values of a mask that is stored as a number.
_HALF = 0.5
_ATTENTION = "aten.scaled_dot_product_attention.default"
_PRODUCT = "aten.baddbmm.default"  # as nn.MultiheadAttention adds its mask
SUMS = frozenset({"aten.add.Tensor", "aten.add_.Tensor"})
_FILLS = frozenset({"aten.masked_fill.Scalar", "aten.masked_fill_.Scalar"})
_CHOICES = frozenset(f"aten.where.{name}" for name in ("self", "ScalarOther", "ScalarSelf", "Scalar"))
_COPIES = frozenset(f"aten.{name}" for name in ("clone.default", "contiguous.default", "alias.default", "to.dtype"))
# What computes a term makes scores of it: a large negative number is then a value, not a mask.
_LAYERS = frozenset(
    f"aten.{name}.default"
    for name in ("linear", "addmm", "mm", "bmm", "matmul", "baddbmm", "conv1d", "conv2d", "convolution", "embedding",
                 "layer_norm", "einsum")
)  # fmt: skip
_VIEWS = frozenset(
    f"aten.{name}"
    for name in (
        "view.default", "reshape.default", "_unsafe_view.default", "expand.default", "unsqueeze.default", "squeeze.dim",
        "squeeze.dims", "transpose.int", "permute.default", "slice.Tensor", "select.int", "repeat.default",
    )
)  # fmt: skip


def replace_additive_mask(model: GraphModule) -> int:
    """Rewrite the graph in place; returns the number of rewritten nodes."""
    return _replace(model, follow=False)


def replace_large_additive_mask(model: GraphModule) -> int:
    """Rewrite sums that a check restored: forbidden scores depend on the minimum of their row."""
    return _replace(model, follow=True)


def _replace(model: GraphModule, *, follow: bool) -> int:
    count = 0
    for node in reversed(list(model.graph.nodes)):
        name = operator_name(node)
        if name == _ATTENTION:
            count += _attention(model, node)
        elif name in (*SUMS, _PRODUCT) and value_of(node).dtype == torch.float32 and only_softmax_reads(node):
            count += _sum(model, node, follow)
    return count


def _attention(model: GraphModule, node: Node) -> int:
    mask = arguments(node)["attn_mask"]
    if mask is None or value_of(mask).dtype == torch.bool or tensor_of(model, mask) is not None:
        return 0
    allowed = allowed_positions(model, Insert(model, node), mask)
    if allowed is None:
        return 0
    node.replace_input_with(mask, allowed)
    return 1


def _sum(model: GraphModule, node: Node, follow: bool) -> int:
    """Remove the masks from a sum; they are applied to the rest one by one."""
    call = Insert(model, node)
    scores: list[Node] = []
    masks: list[Mask] = []
    for term in _terms(call, node):
        data = tensor_of(model, term)
        if data is not None:
            low = NEVER if follow else _LOW
            is_mask = data.dim() and float(data.amin()) <= low
            found = None if not is_mask else _constant(model, call, data, follow)
        else:
            allowed = allowed_positions(model, call, term)
            if allowed is None and is_given_mask(model, term):
                found = _given_mask(model, call, term, follow)
            else:
                found = None if allowed is None else _computed_mask(model, call, allowed, follow)
        if found is None:
            scores.append(term)
        else:
            masks.append(found)
    if not masks or not scores:
        return 0
    made = scores[0]
    for term in scores[1:]:
        made = call(torch.ops.aten.add.Tensor, made, term)
    for mask in masks:
        made = apply_mask(call, made, mask)
    replace_scores(
        model, node, made, masks[0].keep if follow and len(masks) == 1 and _is_endless(model, node) else None
    )
    return 1


def _constant(model: GraphModule, call: Insert, data: torch.Tensor, follow: bool) -> Mask:
    return following_mask(model, call, data) if follow else constant_mask(model, call.node, data)


def _computed_mask(model: GraphModule, call: Insert, allowed: Node, follow: bool) -> Mask:
    data = tensor_of(model, allowed)
    return following_mask(model, call, allowed if data is None else data) if follow else computed_mask(call, allowed)


def is_given_mask(model: GraphModule, term: Node) -> bool:
    """Return whether a term is a mask in numbers that comes from the inputs: it forbids scores, and no layer computes it."""
    lowest = seen_lowest(model, term)
    if lowest is None or lowest > NEVER:
        return False
    seen, waiting = {term}, [term]
    while waiting:
        node = waiting.pop()
        if operator_name(node) in _LAYERS:
            return False
        new = [one for one in node.all_input_nodes if one not in seen]
        seen.update(new)
        waiting += new
    return True


def _given_mask(model: GraphModule, call: Insert, term: Node, follow: bool) -> Mask:
    """Return the parts of a mask in numbers, which is bounded in float: its own range has one step for what is allowed."""
    aten: Any = torch.ops.aten
    bounded = call(aten.clamp.default, term, 2 * FORBIDDEN)
    mark_float(bounded)
    return (
        following_mask(model, call, call(aten.gt.Scalar, bounded, FORBIDDEN))
        if follow
        else computed_mask(call, bounded)
    )


def _is_endless(model: GraphModule, node: Node) -> bool:
    """Return whether one of the terms is a constant with minus infinity: it leaves exact zeros."""
    data = [tensor_of(model, one) for one in node.all_input_nodes]
    return any(one is not None and bool((one == -torch.inf).any()) for one in data)


def _terms(call: Insert, node: Node) -> list[Node]:
    """Return the terms of a sum and of the sums in it without other readers; the node itself if it is no plain sum."""
    left, right = node.args[:2]
    if operator_name(node) == _PRODUCT:
        given = arguments(node)
        plain = given["alpha"] == given["beta"] == 1
        return [call(torch.ops.aten.bmm.default, *node.args[1:3]), given["self"]] if plain else [node]
    if not isinstance(left, Node) or not isinstance(right, Node) or arguments(node)["alpha"] != 1:
        return [node]
    found = []
    for term in (left, right):
        plain = operator_name(term) in SUMS and len(term.users) == 1
        found += _terms(call, term) if plain else [term]
    return found


def allowed_positions(model: GraphModule, call: Insert, node: Any) -> Node | None:
    """Return booleans that are true where a mask is 0 and false where it forbids; None if the value is no such mask."""
    if not isinstance(node, Node) or not isinstance(value_of(node), torch.Tensor):
        return None
    data = tensor_of(model, node)
    if data is not None:
        return _of_constant(model, call, data)
    if value_of(node).dtype != torch.float32:
        return None
    found = lookup_of(model, node)
    if found is not None:
        allowed = _of_constant(model, call, found.table)
        return None if allowed is None else found.again(call, allowed)
    name, given = operator_name(node), arguments(node) if node.op == "call_function" else {}
    if name in _COPIES:
        return allowed_positions(model, call, node.args[0])
    if name in _VIEWS:
        seen = allowed_positions(model, call, node.args[0])
        return None if seen is None else call(node.target, seen, *node.args[1:], **node.kwargs)
    if name in SUMS:
        sides = [allowed_positions(model, call, side) for side in node.args[:2]]
        return None if None in sides else call(torch.ops.aten.logical_and.default, *sides)
    if name in _FILLS and is_zero(model, given["self"]) and float(given["value"]) <= NEVER:
        return call(torch.ops.aten.logical_not.default, given["mask"])
    if name in _CHOICES:
        return _of_choice(model, call, given)
    if name == "aten.mul.Tensor" and (_number(model, given["other"]) or 0.0) <= NEVER:
        return _of_product(call, given["self"])
    return None


def _of_constant(model: GraphModule, call: Insert, data: torch.Tensor) -> Node | None:
    if not data.is_floating_point() or not bool(((data == 0) | (data <= NEVER)).all()):
        return None
    with model.graph.inserting_before(call.node):
        return add_constant(model, "_allowed_positions", data == 0)


def _of_choice(model: GraphModule, call: Insert, given: dict[str, Any]) -> Node | None:
    yes, no = (_number(model, given[name]) for name in ("self", "other"))
    if yes is None or no is None or max(yes, no) != 0 or min(yes, no) > NEVER:
        return None
    condition = given["condition"]
    return condition if yes == 0 else call(torch.ops.aten.logical_not.default, condition)


def _of_product(call: Insert, x: Any) -> Node | None:
    """Return booleans that are true where a product with a large negative number is 0, because its other factor is 0."""
    if not isinstance(x, Node):
        return None
    if operator_name(x) == "aten.rsub.Scalar" and tuple(x.args[1:]) in ((1,), (1, 1)):
        return call(torch.ops.aten.gt.Scalar, x.args[0], _HALF)
    return call(torch.ops.aten.lt.Scalar, x, _HALF)


def _number(model: GraphModule, side: Any) -> float | None:
    """Return a number, or that of a constant tensor with equal elements; None for any other."""
    if isinstance(side, (int, float)):
        return float(side)
    if is_zero(model, side):
        return 0.0
    data = tensor_of(model, side) if isinstance(side, Node) else None
    if data is None or not data.is_floating_point() or not data.numel():
        return None
    first = data.reshape(-1)[0]
    return float(first) if bool((data == first).all()) else None
