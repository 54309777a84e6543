"""BypassJoins: a slice that takes a part out of a join again reads the part.

Detectors join boxes and scores, and take them apart for their selection; one scale for both would lose the scores.

Before:  y = cat([boxes, scores], 1).permute(0, 2, 1); y[:, :, 4:]
After:   scores.permute(0, 2, 1)
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, is_static, operator_name, shape_of
from openneutron.executorch.quantize.passes._insert import ROLE_KEY, Insert
from openneutron.executorch.quantize.passes.separate_ranges import PERMUTES, permute_order

_JOIN = "aten.cat.default"
_SLICE = "aten.slice.Tensor"


def bypass_joins(model: GraphModule) -> int:
    """Replace slices of joins by the parts; returns how many there are."""
    count = 0
    for node in list(model.graph.nodes):
        found = _part(node) if operator_name(node) == _SLICE else None
        if found is None:
            continue
        part, orders = found
        call = Insert(model, node)
        for order in orders:
            part = call(torch.ops.aten.permute.default, part, order)
        node.replace_all_uses_with(part)
        model.graph.erase_node(node)
        count += 1
    return count


def _part(node: Node) -> tuple[Node, list[list[int]]] | None:
    """Return the part of a join that a slice is, and the permutes between them, first to last; None if it is not one."""
    given = arguments(node)
    source: Any = node.args[0]
    if ROLE_KEY in node.meta or not is_static(node) or not is_static(source) or given.get("step") not in (None, 1):
        return None
    rank = len(shape_of(node))
    dim = int(given.get("dim") or 0) % rank
    size = shape_of(source)[dim]
    start, end = (_place(given.get(name), size, default) for name, default in (("start", 0), ("end", size)))
    orders: list[list[int]] = []
    while operator_name(source) in PERMUTES:
        order = permute_order(operator_name(source), arguments(source), rank)
        orders.insert(0, order)
        source, dim = source.args[0], order[dim]
    if operator_name(source) != _JOIN or int(arguments(source).get("dim") or 0) % rank != dim:
        return None
    at = 0
    for part in source.args[0]:
        if len(shape_of(part)) != rank:
            return None
        size = shape_of(part)[dim]
        if (at, at + size) == (start, end):
            return part, orders
        at += size
    return None


def _place(given: Any, size: int, default: int) -> int:
    """Return an end of a slice, counted from the front."""
    place = default if given is None else int(given)
    return min(max(place + size if place < 0 else place, 0), size)
