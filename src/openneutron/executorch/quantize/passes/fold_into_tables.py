"""FoldIntoTables: computes elementwise functions of rows looked up in a constant table once, on the table.

Before:  y = where(allowed[position], 1, 0)          z = cos(angles[position])
After:   y = where(allowed, 1, 0)[position]          z = cos(angles)[position]

Rows of a mask or of a position's angles then enter the NPU as stored values of a table, whatever the table held before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from openneutron.executorch.fx import operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import add_constant
from openneutron.executorch.quantize.passes._insert import Insert
from openneutron.executorch.quantize.passes._lookups import VIEWS, Lookup, lookup_of

_ELEMENTWISE = frozenset(
    f"aten.{name}"
    for name in (
        "where.Scalar", "where.ScalarOther", "where.ScalarSelf", "where.self", "gt.Scalar", "ge.Scalar", "lt.Scalar",
        "le.Scalar", "eq.Scalar", "ne.Scalar", "logical_not.default", "logical_and.default", "bitwise_not.default",
        "to.dtype", "neg.default", "cos.default", "sin.default", "exp.default",
        "clamp.default",
    )
)  # fmt: skip


@dataclass(frozen=True)
class _Seen:
    """A lookup through views, innermost first."""

    lookup: Lookup
    views: tuple[Node, ...]


def fold_into_tables(model: GraphModule) -> int:
    """Rewrite the graph in place; returns the number of functions that were computed."""
    count = 0
    for node in list(model.graph.nodes):
        if operator_name(node) not in _ELEMENTWISE:
            continue
        seen = [_see(model, source) for source in node.all_input_nodes]
        if not seen or any(one is None for one in seen):
            continue
        found = {one.lookup.node: one for one in seen if one is not None}
        first = next(iter(found.values()))
        if any(not _alike(first, one) for one in found.values()):
            continue
        tables = dict(zip(node.all_input_nodes, (one.lookup.table for one in seen if one is not None), strict=True))
        args, kwargs = map_arg((node.args, node.kwargs), tables.__getitem__)
        table = node.target(*args, **kwargs)  # type: ignore[operator]
        if table.shape != first.lookup.table.shape:
            continue
        _replace(model, node, first, table)
        count += 1
    return count


def _see(model: GraphModule, node: Node) -> _Seen | None:
    views: list[Node] = []
    while operator_name(node) in VIEWS and isinstance(node.args[0], Node):
        views.insert(0, node)
        node = node.args[0]
    lookup = lookup_of(model, node)
    return None if lookup is None else _Seen(lookup, tuple(views))


def _alike(one: _Seen, other: _Seen) -> bool:
    """Return whether two lookups read the same rows of tables of one shape, and views show them alike."""
    a, b = one.lookup, other.lookup
    same = (a.dim, a.index, a.table.shape) == (b.dim, b.index, b.table.shape)
    return same and [_form(view) for view in one.views] == [_form(view) for view in other.views]


def _form(view: Node) -> Any:
    return operator_name(view), view.args[1:], tuple(value_of(view).shape)


def _replace(model: GraphModule, node: Node, seen: _Seen, table: torch.Tensor) -> None:
    call = Insert(model, node)
    with model.graph.inserting_before(node):
        constant = add_constant(model, "_table", table.contiguous())
    made = seen.lookup.again(call, constant)
    for view in seen.views:
        made = call(view.target, made, *view.args[1:], **view.kwargs)
    node.replace_all_uses_with(made)
    model.graph.erase_node(node)
