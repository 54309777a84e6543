"""Masks of attention: what forbids a score, who reads scores, and how a mask is applied in INT8.

A forbidden score becomes -16 (times 0, plus -16) instead of minus infinity or -1e9, which have no place among 256 steps:
scores lie around zero and keep most of them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import add_constant
from openneutron.executorch.quantize.passes._insert import Insert

# exp(-16) is 1e-7. Even where the largest allowed score is -6, a hundred forbidden ones weigh about one step of 1/256.
FORBIDDEN = -16.0
_SOFTMAX = frozenset({"aten.softmax.int", "aten._softmax.default"})
_VIEWS = frozenset({"aten.view.default", "aten.reshape.default", "aten._unsafe_view.default", "aten.unsqueeze.default"})


def only_softmax_reads(node: Node) -> bool:
    """Whether nothing but softmaxes over the last dimension read a node, directly or through views that keep it."""
    return bool(node.users) and all(_is_softmax(user) or _is_seen_by_softmax(node, user) for user in node.users)


def _is_softmax(node: Node) -> bool:
    if operator_name(node) not in _SOFTMAX:
        return False
    return bool(arguments(node)["dim"] in (-1, len(value_of(node).shape) - 1))


def _is_seen_by_softmax(node: Node, view: Node) -> bool:
    if operator_name(view) not in _VIEWS or value_of(view).shape[-1] != value_of(node).shape[-1]:
        return False
    return only_softmax_reads(view)


def masked(call: Insert, scores: Node, keep: Node | None, bias: Node) -> Node:
    """The scores with forbidden ones replaced: `keep` is 0 for those (None: there are none), `bias` what to add."""
    kept = scores if keep is None else call(torch.ops.aten.mul.Tensor, scores, keep)
    return call(torch.ops.aten.add.Tensor, kept, bias)


def constant_mask(model: GraphModule, node: Node, mask: torch.Tensor) -> tuple[Node | None, Node]:
    """Which scores to keep (None for all) and what to add; a softmax does not see what a whole row has in common."""
    if mask.dtype == torch.bool:
        bias = torch.where(mask, 0.0, -torch.inf)
    else:
        largest = mask.amax(-1, keepdim=True)
        bias = (mask - torch.where(torch.isfinite(largest), largest, 0.0)).to(torch.float32)
    keep = bias > FORBIDDEN
    with model.graph.inserting_before(node):
        kept = None if bool(keep.all()) else add_constant(model, "_allowed", keep.to(torch.float32))
        return kept, add_constant(model, "_mask", torch.where(keep, bias, FORBIDDEN))


def computed_mask(call: Insert, mask: Node) -> tuple[Node, Node]:
    """The same at run time, by operators that are not quantized: a mask may hold minus infinity."""
    aten: Any = torch.ops.aten
    if value_of(mask).dtype == torch.bool:
        return call(aten.where.Scalar, mask, 1.0, 0.0), call(aten.where.Scalar, mask, 0.0, FORBIDDEN)
    keep = call(aten.gt.Scalar, mask, FORBIDDEN)
    return call(aten.where.Scalar, keep, 1.0, 0.0), call(aten.where.ScalarOther, keep, mask, FORBIDDEN)
