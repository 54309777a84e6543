"""FoldPositions: computes what depends on a position alone once for all positions, and looks it up.

Before:  y = where(columns <= position, 0, -inf)        z = cos(position * rates)
After:   y = table[position]                            z = other[position]

Decoders make their masks and rotations from the position in each call, with integers and angles that eight or sixteen bits
cannot hold. A position is an integer input that indexes a cache or a table: that says how many there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from openneutron.executorch.fx import is_static, operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import add_constant, tensor_of
from openneutron.executorch.quantize.passes._insert import Insert
from openneutron.executorch.quantize.passes._lookups import VIEWS, lookup_of
from openneutron.executorch.upstream.names import OpOverload, schema_of

_MOST_VALUES: Final = 1 << 26  # of a table, while it is made: 256 MB
_MOST_POSITIONS: Final = 1 << 16
# Trained layers stay layers: a table of their results would be larger than their weights.
_LAYERS: Final = frozenset({"aten.embedding.default", "aten.linear.default", "aten.conv1d.default"})
_SEEN_THROUGH: Final = VIEWS | {"aten.clone.default", "aten.alias.default", "aten.contiguous.default"}
_aten = torch.ops.aten


@dataclass(frozen=True)
class _Position:
    """An input of `count` positions, each below `context`, and what is computed from it alone, in order."""

    node: Node
    count: int
    context: int
    chain: tuple[Node, ...]


def fold_positions(model: GraphModule) -> int:
    """Rewrite the graph in place; returns the number of tables."""
    count = 0
    for node in list(model.graph.nodes):
        context = _context(node)
        if not 0 < context <= _MOST_POSITIONS:
            continue
        chain = _computed_from(model, node)
        position = _Position(node, value_of(node).numel(), context, tuple(chain))
        wanted = [one for one in _read_elsewhere(chain) if _is_worth(model, one, position)]
        for one, table, axis in _tables(model, position, wanted):
            _look_up(model, one, position, table, axis)
            count += 1
    return count


def _context(node: Node) -> int:
    """Return how many positions an integer input may have: the smallest size that it indexes; 0 where it indexes nothing."""
    value = node.meta.get("val")
    if node.op != "placeholder" or not isinstance(value, torch.Tensor) or value.dtype not in (torch.int32, torch.int64):
        return 0
    if not value.numel() or sum(size > 1 for size in value.shape) > 1:
        return 0
    return min((size for reader in (node, *_views_of(node)) for size in _indexed_sizes(reader)), default=0)


def _views_of(node: Node) -> Iterator[Node]:
    for user in node.users:
        if operator_name(user) in _SEEN_THROUGH and user.args[0] is node:
            yield user
            yield from _views_of(user)


def _indexed_sizes(node: Node) -> Iterator[int]:
    for user in node.users:
        name, args = operator_name(user).replace("_.default", ".default"), user.args
        if name in ("aten.index.Tensor", "aten.index_put.default"):
            yield from (int(value_of(args[0]).shape[at]) for at, one in enumerate(args[1]) if one is node)  # type: ignore[arg-type]
        elif name in ("aten.index_select.default", "aten.index_copy.default") and args[2] is node:
            yield int(value_of(args[0]).shape[args[1]])  # type: ignore[index]
        elif name == "aten.embedding.default" and args[1] is node:
            yield int(value_of(args[0]).shape[0])


def _computed_from(model: GraphModule, position: Node) -> list[Node]:
    """Return the calls that depend on a position and constants alone, and on nothing random, in order."""
    known: dict[Node, bool] = {position: True}  # of calls: whether they depend on the position at all
    for node in model.graph.nodes:
        if tensor_of(model, node) is not None:
            known[node] = False
        elif _is_plain(node) and all(source in known for source in node.all_input_nodes):
            known[node] = any(known[source] for source in node.all_input_nodes)
    return [node for node, depends in known.items() if node.op == "call_function" and (depends or node.users)]


def _is_plain(node: Node) -> bool:
    if node.op != "call_function" or not isinstance(node.target, OpOverload) or operator_name(node) in _LAYERS:
        return False
    random = torch.Tag.nondeterministic_seeded in node.target.tags
    one = isinstance(node.meta.get("val"), torch.Tensor)
    return one and not random and not schema_of(node.target).is_mutable and is_static(node)


def _read_elsewhere(chain: Sequence[Node]) -> list[Node]:
    """Return the calls whose results others read; views of a result are not results."""
    inside = set(chain)
    found: dict[Node, None] = {}
    for node in chain:
        if any(user not in inside for user in node.users):
            while operator_name(node) in _SEEN_THROUGH and node.args[0] in inside:
                node = node.args[0]  # type: ignore[assignment]
            found[node] = None
    return list(found)


def _is_worth(model: GraphModule, node: Node, position: _Position) -> bool:
    """Return whether a result depends on the position, is a number or a truth, and is no plain lookup or view already."""
    value = value_of(node)
    if value.dtype not in (torch.float32, torch.bool) or not _depends(node, position.node):
        return False
    if operator_name(node) in _SEEN_THROUGH or lookup_of(model, node) is not None:
        return False
    return position.context * value.numel() // position.count <= _MOST_VALUES


def _depends(node: Node, position: Node) -> bool:
    waiting, seen = [node], {node}
    while waiting:
        one = waiting.pop()
        if one is position:
            return True
        new = [source for source in one.all_input_nodes if source not in seen]
        seen.update(new)
        waiting += new
    return False


def _tables(
    model: GraphModule, position: _Position, wanted: Sequence[Node]
) -> Iterator[tuple[Node, torch.Tensor, int]]:
    """Yield results with their tables [positions, ...] and the axis of the positions in the result."""
    if not wanted:
        return
    every = torch.arange(position.context)
    filled = torch.cat([every, every.new_full((-len(every) % position.count,), position.context - 1)])
    pieces: dict[Node, list[torch.Tensor]] = {node: [] for node in wanted}
    for places in filled.reshape(-1, position.count):
        for node, value in zip(wanted, _run(model, position, places, wanted), strict=True):
            pieces[node].append(value)
    mixed = every[torch.arange(position.count) * 7 % position.context].flip(0)
    for node, value in zip(wanted, _run(model, position, mixed, wanted), strict=True):
        axes = [0] if position.count == 1 else [at for at, size in enumerate(value.shape) if size == position.count]
        for axis in axes:
            rows = [one.movedim(axis, 0) if position.count > 1 else one.unsqueeze(0) for one in pieces[node]]
            table = torch.cat(rows)[: position.context]
            seen = value.movedim(axis, 0) if position.count > 1 else value.unsqueeze(0)
            if torch.allclose(table[mixed].double(), seen.double(), equal_nan=True):
                yield node, table, axis
                break


def _run(model: GraphModule, position: _Position, places: torch.Tensor, wanted: Sequence[Node]) -> list[torch.Tensor]:
    given = value_of(position.node)
    values: dict[Node, Any] = {position.node: places.to(given.dtype).reshape(given.shape)}
    with torch.no_grad():
        for node in position.chain:
            for source in node.all_input_nodes:
                if source not in values:
                    values[source] = tensor_of(model, source)
            args, kwargs = map_arg((node.args, node.kwargs), values.__getitem__)
            values[node] = node.target(*args, **kwargs)  # type: ignore[operator]
    return [values[node] for node in wanted]


def _look_up(model: GraphModule, node: Node, position: _Position, table: torch.Tensor, axis: int) -> None:
    """Replace a result by rows of its table; sizes of 1 are no part of the table, so that masks look like masks."""
    call, shape = Insert(model, node), list(value_of(node).shape)
    sizes = [size for size in table.shape[1:] if size != 1]
    with model.graph.inserting_before(node):
        constant = add_constant(model, "_positions", table.reshape(position.context, *sizes).contiguous())
    index = position.node
    if value_of(index).dim() != 1:
        index = call(_aten.reshape.default, index, [position.count])
    made = call(_aten.index.Tensor, constant, [index])
    if position.count > 1 and any(size != 1 for size in shape[:axis]):
        rest = [size for at, size in enumerate(shape) if at != axis]
        made = call(_aten.reshape.default, made, [position.count, *rest])
        made = call(_aten.permute.default, made, [*range(1, axis + 1), 0, *range(axis + 1, len(shape))])
    if list(value_of(made).shape) != shape:
        made = call(_aten.reshape.default, made, shape)
    node.replace_all_uses_with(made)
