"""BypassJoins: a slice that takes parts out of a join again, or some of one part, reads the parts.

Detectors join boxes and scores, and take them apart for their selection; one scale for both would lose the scores.

Before:  y = cat([boxes, scores], 1).permute(0, 2, 1); y[:, :, 4:]
After:   scores.permute(0, 2, 1)

A slice that cuts into several parts stays: it would become more operators. So does one that is stored as a state, such as the
last frames of a window: it has the window's scale, which keeps the state on the NPU.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, is_static, operator_name, shape_of
from openneutron.executorch.quantize.passes._insert import ROLE_KEY, Insert
from openneutron.executorch.quantize.passes.separate_ranges import PERMUTES, permute_order

_JOIN = "aten.cat.default"
_SLICE, _STORE = "aten.slice.Tensor", "aten.copy_.default"


@dataclass(frozen=True)
class _Taken:
    """What a slice takes: parts of a join, what of the one part, and the permutes behind the join, first to last."""

    parts: list[Node]
    dim: int
    inside: tuple[int, int] | None
    orders: list[list[int]]


def bypass_joins(model: GraphModule) -> int:
    """Replace slices of joins by the parts; returns how many there are."""
    count = 0
    for node in list(model.graph.nodes):
        stored = any(operator_name(user) == _STORE for user in node.users)
        taken = _taken(node) if operator_name(node) == _SLICE and not stored else None
        if taken is None:
            continue
        call = Insert(model, node)
        made = taken.parts[0]
        if len(taken.parts) > 1:
            made = call(torch.ops.aten.cat.default, taken.parts, taken.dim)
        elif taken.inside is not None:
            made = call(torch.ops.aten.slice.Tensor, made, taken.dim, *taken.inside)
        for order in taken.orders:
            made = call(torch.ops.aten.permute.default, made, order)
        node.replace_all_uses_with(made)
        model.graph.erase_node(node)
        count += 1
    return count


def _taken(node: Node) -> _Taken | None:
    """Return the parts of a join that a slice is, or that it lies in; None if it is neither, or takes all of the join."""
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
    if operator_name(source) != _JOIN or int(arguments(source).get("dim") or 0) % rank != dim or start >= end:
        return None
    parts = list(source.args[0])
    if any(len(shape_of(part)) != rank for part in parts):
        return None
    edges = [0, *accumulate(shape_of(part)[dim] for part in parts)]
    if start in edges and end in edges:
        whole = parts[edges.index(start) : edges.index(end)]
        return _Taken(whole, dim, None, orders) if len(whole) < len(parts) or len(parts) == 1 else None
    at = bisect_right(edges, start) - 1
    if end > edges[at + 1]:
        return None
    return _Taken([parts[at]], dim, (start - edges[at], end - edges[at]), orders)


def _place(given: Any, size: int, default: int) -> int:
    """Return an end of a slice, counted from the front."""
    place = default if given is None else int(given)
    return min(max(place + size if place < 0 else place, 0), size)
