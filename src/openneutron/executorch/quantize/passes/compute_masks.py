"""ComputeMasks: rows of a causal mask, looked up by position, are computed from the position instead.

A mask of as many rows as columns grows with the square of the context: in 16 bits two of 256 positions take 256 KB.

Before:  y = table[position]                     row p holds a up to column p + k, and b behind
After:   d = at[position] - column               4 * (p + k - c) + 2: at least 2 up to column p + k, else at most -2
         y = b + (a - b) * clamp(relu(d), 0, 1)

The steps of 16 bits are finer than 2 up to `_MOST` positions, and clamping removes what they round: y is exactly one of both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import operator_name
from openneutron.executorch.quantize.annotator import RANGE_KEY
from openneutron.executorch.quantize.passes._attributes import add_constant
from openneutron.executorch.quantize.passes._insert import Insert
from openneutron.executorch.quantize.passes._lookups import Lookup, lookup_of

_LEAST: Final = 32  # positions; the rows of fewer take less memory than the calls that compute them
_MOST: Final = 4096  # positions and columns: with a step of 1/2, three roundings leave 2 above 1
_aten = torch.ops.aten


@dataclass(frozen=True)
class _Causal:
    """A mask that is `allowed` up to column p + `ahead` of row p, and `forbidden` behind."""

    rows: int
    columns: int
    ahead: int
    allowed: float
    forbidden: float


def compute_masks(model: GraphModule, is_wide: Callable[[Node], bool]) -> int:
    """Rewrite in place the lookups of causal masks in 16 bits; returns their number."""
    count = 0
    kept: dict[Any, Node] = {}  # of all layers with the same mask, 1 for what is allowed
    for node in list(model.graph.nodes):
        lookup = lookup_of(model, node) if operator_name(node) == "aten.index.Tensor" and node.users else None
        found = _causal(lookup) if lookup is not None and is_wide(node) else None
        if lookup is None or found is None:
            continue
        key = lookup.index, lookup.dim, lookup.table.shape, found.ahead
        made = [] if key in kept else _compare(model, lookup, found)
        keep = kept[key] if key in kept else made[-1]
        result = _scale(model, node, keep, found, made)
        if not all(map(is_wide, made)):  # a precision chosen by operator: 8 bits cannot tell positions apart
            for one in reversed(made):
                if not one.users:
                    model.graph.erase_node(one)
            continue
        kept.setdefault(key, keep)
        node.replace_all_uses_with(result)
        model.graph.erase_node(node)
        count += 1
    return count


def _causal(lookup: Lookup) -> _Causal | None:
    """Return the mask that a table is, None for other tables."""
    table, dim = lookup.table, lookup.dim
    rows, columns = int(table.shape[dim]), int(table.shape[-1])
    if dim == table.dim() - 1 or table.numel() != rows * columns or not _LEAST <= max(rows, columns) <= _MOST:
        return None
    flat = table.reshape(rows, columns)
    allowed, forbidden = float(flat[-1, 0]), float(flat[0, -1])
    if not torch.isfinite(torch.tensor([allowed, forbidden])).all() or allowed == forbidden:
        return None
    widths = (flat == allowed).sum(1)
    inside = ((widths > 0) & (widths < columns)).nonzero()
    if not len(inside):
        return None
    row = int(inside[0])
    ahead = int(widths[row]) - 1 - row
    places = torch.arange(columns) <= torch.arange(rows)[:, None] + ahead
    return _Causal(rows, columns, ahead, allowed, forbidden) if _equal(flat, places, allowed, forbidden) else None


def _equal(flat: torch.Tensor, places: torch.Tensor, allowed: float, forbidden: float) -> bool:
    return torch.equal(flat, torch.where(places, allowed, forbidden).to(flat.dtype))


def _compare(model: GraphModule, lookup: Lookup, found: _Causal) -> list[Node]:
    """Return the calls of which the last is 1 for allowed columns and 0 for others."""
    call = Insert(model, lookup.node)
    places = (4.0 * (torch.arange(found.rows) + found.ahead) + 2.0).reshape(*lookup.table.shape[:-1], 1)
    with model.graph.inserting_before(lookup.node):
        table = add_constant(model, "_places", places)
        ramp = add_constant(model, "_columns", 4.0 * torch.arange(found.columns))
    place = lookup.again(call, table)
    behind = call(_aten.sub.Tensor, place, ramp)
    above = call(_aten.relu.default, behind)
    above.meta[RANGE_KEY] = 4.0 * (found.rows + abs(found.ahead))
    keep = call(_aten.clamp.default, above, 0.0, 1.0)
    keep.meta[RANGE_KEY] = 1.0
    return [place, behind, above, keep]


def _scale(model: GraphModule, node: Node, keep: Node, found: _Causal, made: list[Node]) -> Node:
    """Return the mask's values for a `keep` of zeros and ones; calls are added to `made`."""
    call = Insert(model, node)

    def add(target: Any, *args: Any, most: float) -> Node:
        made.append(call(target, *args))
        made[-1].meta[RANGE_KEY] = most
        return made[-1]

    step = found.allowed - found.forbidden
    if found.forbidden == 0:
        return keep if step == 1 else add(_aten.mul.Tensor, keep, step, most=abs(step))
    drop = add(_aten.sub.Tensor, keep, 1.0, most=1.0)  # -1 for what is forbidden
    result = drop if step == 1 else add(_aten.mul.Tensor, drop, step, most=abs(step))
    if found.allowed == 0:
        return result
    return add(_aten.add.Tensor, result, found.allowed, most=max(abs(found.allowed), abs(found.forbidden)))
