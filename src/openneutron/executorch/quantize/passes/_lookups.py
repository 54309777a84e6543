"""Rows of a constant table looked up at run time, and views of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import tensor_of
from openneutron.executorch.quantize.passes._insert import Insert

# Views that do not depend on the type of what they show.
VIEWS = frozenset(
    f"aten.{name}"
    for name in (
        "view.default",
        "reshape.default",
        "unsqueeze.default",
        "squeeze.dim",
        "squeeze.dims",
        "expand.default",
    )
)


@dataclass(frozen=True)
class Lookup:
    """A lookup in a table: its call, and the call's position of the table and of the index."""

    node: Node
    table: torch.Tensor
    dim: int
    index: Node

    def again(self, call: Insert, table: Node) -> Node:
        """Return the same rows of another table."""
        places = [None] * self.dim
        return call(torch.ops.aten.index.Tensor, table, [*places, self.index])


def lookup_of(model: GraphModule, node: Any) -> Lookup | None:
    """Return the lookup that a node is, in a constant table at one index known only at run time; None for others.

    Example:
        >>> lookup_of(model, node).table.shape
        torch.Size([64, 8])
    """
    name = operator_name(node) if isinstance(node, Node) else ""
    if name == "aten.embedding.default":
        given = arguments(node)
        source, dim, index = given["weight"], 0, given["indices"]
    elif name == "aten.index_select.default":
        given = arguments(node)
        source, dim, index = given["self"], int(given["dim"]), given["index"]
    elif name == "aten.index.Tensor":
        named = [(at, one) for at, one in enumerate(node.args[1]) if one is not None]
        if len(named) != 1:
            return None
        source, (dim, index) = node.args[0], named[0]
    else:
        return None
    table = tensor_of(model, source) if isinstance(source, Node) else None
    kind = getattr(value_of(index), "dtype", None) if isinstance(index, Node) else None
    if table is None or kind not in (torch.int32, torch.int64) or tensor_of(model, index) is not None:
        return None
    return Lookup(node, table, dim % max(table.dim(), 1), index)
