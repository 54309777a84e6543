"""Attention masks: which scores are forbidden, who reads the scores, and how a mask is applied in INT8.

A forbidden score becomes -16 (times 0, plus -16) instead of minus infinity or -1e9, which would leave the other scores, near
zero, a single one of 256 steps. If scores are larger than that, forbidden ones are set relative to the minimum of their row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import add_constant
from openneutron.executorch.quantize.passes._insert import Insert

# exp(-16) is 1e-7. Even if the largest allowed score is -6, a hundred forbidden ones weigh about one step of 1/256.
FORBIDDEN = -16.0
# Added to a score, it makes that score's probability zero in float32 whatever the other scores are.
NEVER = -1e3
_SOFTMAX = frozenset({"aten.softmax.int", "aten._softmax.default"})
_VIEWS = frozenset({"aten.view.default", "aten.reshape.default", "aten._unsafe_view.default", "aten.unsqueeze.default"})


def only_softmax_reads(node: Node) -> bool:
    """Return whether only softmaxes over the last dimension read a node, directly or through views that keep it."""
    return bool(node.users) and all(_is_softmax(user) or _is_seen_by_softmax(node, user) for user in node.users)


def _is_softmax(node: Node) -> bool:
    if operator_name(node) not in _SOFTMAX:
        return False
    return bool(arguments(node)["dim"] in (-1, len(value_of(node).shape) - 1))


def _is_seen_by_softmax(node: Node, view: Node) -> bool:
    if operator_name(view) not in _VIEWS or value_of(view).shape[-1] != value_of(node).shape[-1]:
        return False
    return only_softmax_reads(view)


@dataclass(frozen=True)
class Mask:
    """A mask in parts: `keep` is 0 for forbidden scores (None: there are none), `bias` is added (None: nothing).

    With `drop`, which is 1 for forbidden scores, these become the smallest score of their row minus 16.
    """

    keep: Node | None
    bias: Node | None
    drop: Node | None = None


def apply_mask(call: Insert, scores: Node, mask: Mask) -> Node:
    """Return the scores with forbidden ones replaced."""
    aten: Any = torch.ops.aten
    made = scores if mask.keep is None else call(aten.mul.Tensor, scores, mask.keep)
    if mask.bias is not None:
        made = call(aten.add.Tensor, made, mask.bias)
    if mask.drop is not None:
        low = call(aten.add.Tensor, call(aten.amin.default, scores, [-1], True), FORBIDDEN)
        made = call(aten.add.Tensor, made, call(aten.mul.Tensor, mask.drop, low))
    return made


def constant_mask(model: GraphModule, node: Node, mask: torch.Tensor) -> Mask:
    """Return which scores to keep and what to add; a constant common to a whole row is dropped, because softmax ignores it."""
    if mask.dtype == torch.bool:
        bias = torch.where(mask, 0.0, -torch.inf)
    else:
        largest = mask.amax(-1, keepdim=True)
        bias = (mask - torch.where(torch.isfinite(largest), largest, 0.0)).to(torch.float32)
    keep = bias > FORBIDDEN
    with model.graph.inserting_before(node):
        kept = None if bool(keep.all()) else add_constant(model, "_allowed", keep.to(torch.float32))
        return Mask(kept, add_constant(model, "_mask", torch.where(keep, bias, FORBIDDEN)))


def computed_mask(call: Insert, mask: Node) -> Mask:
    """Return the parts of a mask computed at run time, by operators that are not quantized: it may hold minus infinity."""
    aten: Any = torch.ops.aten
    if value_of(mask).dtype == torch.bool:
        return Mask(call(aten.where.Scalar, mask, 1.0, 0.0), call(aten.where.Scalar, mask, 0.0, FORBIDDEN))
    keep = call(aten.gt.Scalar, mask, FORBIDDEN)
    return Mask(call(aten.where.Scalar, keep, 1.0, 0.0), call(aten.where.ScalarOther, keep, mask, FORBIDDEN))


def following_mask(model: GraphModule, call: Insert, mask: Node | torch.Tensor) -> Mask:
    """Return the mask for scores of any size: forbidden ones are set relative to the minimum of their row."""
    aten: Any = torch.ops.aten
    if isinstance(mask, torch.Tensor):
        keep = mask if mask.dtype == torch.bool else mask > NEVER
        bias = None if mask.dtype == torch.bool else torch.where(keep, mask, 0.0).to(torch.float32)
        with model.graph.inserting_before(call.node):
            added = None if bias is None or not bool(bias.any()) else add_constant(model, "_mask", bias)
            if bool(keep.all()):
                return Mask(None, added)
            parts = [add_constant(model, "_allowed", one.to(torch.float32)) for one in (keep, ~keep)]
        return Mask(parts[0], added, parts[1])
    if value_of(mask).dtype == torch.bool:
        return Mask(call(aten.where.Scalar, mask, 1.0, 0.0), None, call(aten.where.Scalar, mask, 0.0, 1.0))
    allowed = call(aten.gt.Scalar, mask, NEVER)
    added = call(aten.where.ScalarOther, allowed, mask, 0.0)
    return Mask(call(aten.where.Scalar, allowed, 1.0, 0.0), added, call(aten.where.Scalar, allowed, 0.0, 1.0))


def replace_scores(model: GraphModule, node: Node, made: Node, keep: Node | None = None) -> None:
    """Replace the scores that softmaxes after a node read; with `keep`, probabilities are multiplied by it.

    The softmaxes are inserted again, so that the region which a check compares ends after them: forbidden scores may differ,
    probabilities may not.
    """
    for reader in list(node.users):
        call = Insert(model, reader)
        args, kwargs = map_arg((reader.args, reader.kwargs), lambda one: made if one is node else one)
        again = call(reader.target, *args, **kwargs)
        if not _is_softmax(reader):
            seen = None if keep is None else call(reader.target, _expand_mask(call, keep, node), *reader.args[1:])
            replace_scores(model, reader, again, seen)
            continue
        result = again if keep is None else call(torch.ops.aten.mul.Tensor, again, keep)
        reader.replace_all_uses_with(result)
        name = reader.name
        model.graph.erase_node(reader)
        again.name = name
    model.graph.erase_node(node)


def _expand_mask(call: Insert, keep: Node, node: Node) -> Node:
    """Return a mask in the shape of the scores, so that it can follow a view of them."""
    shape = list(value_of(node).shape)
    return keep if list(value_of(keep).shape) == shape else call(torch.ops.aten.expand.default, keep, shape)
