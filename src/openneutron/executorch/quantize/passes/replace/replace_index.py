"""ReplaceIndex: replaces indexing by a constant list by a slice if the positions are evenly spaced, else by one selection.

Before:  y = x[:, [0, 2, 4]]               y = x[:, [3, 0, 1]]
After:   y = slice(x, 1, 0, 5, 2)          y = index_select(x, 1, [3, 0, 1])

Before:  y = index_copy(x, 1, position, rows)
After:   y = index_put(x, [None, position], rows)

Before:  y = index_put(x, [[[0]], [[0], [1]], [position]], rows)      of all positions in the first two dimensions
After:   y = index_put(x, [None, None, position], rows)

Before:  y = embedding(table, unsqueeze(position, 0))
After:   y = reshape(embedding(table, position))          no operator on integers is left for the CPU

Before:  y = x[:, [0, 1], [2, 2]], gather(x, 1, [[3], [0]]), diagonal(x)
After:   y = reshape(index_select(reshape(x, [-1, n]), 0, rows)), of the longest pieces of n values that stay together

Before:  y = gather(x, 1, i.unsqueeze(-1).expand(b, k, c)), i of k positions in each of b sets known only at run time
After:   y = reshape(index_select(reshape(x, [b * n, c]), 0, reshape(i + [[0], [n], [2n], …], [-1]))), n values in a set
"""

from __future__ import annotations

from math import prod
from typing import Any

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, is_static, operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import add_constant, tensor_of
from openneutron.executorch.quantize.passes._insert import Insert
from openneutron.executorch.quantize.passes._lookups import VIEWS, lookup_of

_INDEX, _SELECT = "aten.index.Tensor", "aten.index_select.default"
_COPY, _GATHER = "aten.index_copy.default", "aten.gather.default"
_PUT, _EMBEDDING = "aten.index_put.default", "aten.embedding.default"
_PUT_ROWS = torch.ops.aten.index_put.default
_REPEATS = frozenset({"aten.expand.default", "aten.repeat.default", "aten.expand_as.default"})
_OTHERS = frozenset(f"aten.{name}.default" for name in ("gather", "take", "diagonal"))


def replace_index(model: GraphModule) -> int:
    """Rewrite the graph in place; returns the number of rewritten nodes. Positions that are computed at run time stay."""
    count = 0
    for node in list(model.graph.nodes):
        name = operator_name(node)
        count += _put_rows(model, node) if name == _COPY else 0
        count += _put_everywhere(model, node) if name == _PUT else 0
        if name in (_INDEX, _EMBEDDING) and _look_up_by_input(model, node):
            count += 1
            continue
        if name not in (_INDEX, _SELECT, *_OTHERS) or value_of(node).dtype != torch.float32:
            continue
        x = node.args[0]
        dim, picked = (0, None) if name in _OTHERS else _picked_positions(model, node)
        if name == _GATHER and tensor_of(model, arguments(node)["index"]) is None:
            count += _as_lookup(model, node)
            continue
        if picked is None or not len(picked):
            count += 0 if name == _SELECT else _as_rows(model, node)
            continue
        made = _as_slice(model, node, x, dim, picked)
        if made is None and operator_name(node) == _SELECT:
            continue
        if made is None:
            with model.graph.inserting_before(node):
                constant = add_constant(model, "_picked_positions", torch.tensor(picked))
            constant.meta["val"] = value_of(node).new_empty(len(picked), dtype=torch.int64)
            made = Insert(model, node)(torch.ops.aten.index_select.default, x, dim, constant)
        node.replace_all_uses_with(made)
        model.graph.erase_node(node)
        count += 1
    return count


def _put_rows(model: GraphModule, node: Node) -> int:
    """Rewrite `index_copy`, which is `index_put` with the index in one place."""
    given = arguments(node)
    places = [None] * (int(given["dim"]) % value_of(node).dim())
    made = Insert(model, node)(_PUT_ROWS, given["self"], [*places, given["index"]], given["source"])
    node.replace_all_uses_with(made)
    model.graph.erase_node(node)
    return 1


def _put_everywhere(model: GraphModule, node: Node) -> int:
    """Leave out the indices of `index_put` that list every position of their dimension; one index has to remain."""
    indices = list(node.args[1])  # type: ignore[arg-type]
    if None in indices or len(indices) < 2:
        return 0
    sizes = value_of(node.args[0]).shape
    shapes = [[1] * (len(indices) - value_of(one).dim()) + list(value_of(one).shape) for one in indices]
    if any(len(shape) != len(indices) for shape in shapes):
        return 0
    listed = [
        data is not None and shapes[at] == [int(sizes[at]) if axis == at else 1 for axis in range(len(indices))]
        and torch.equal(data.reshape(-1), torch.arange(int(sizes[at]))) for at, one in enumerate(indices)
        for data in [tensor_of(model, one)]
    ]  # fmt: skip
    if sum(listed) != len(indices) - 1:
        return 0
    at = listed.index(False)
    if any(size != 1 for axis, size in enumerate(shapes[at]) if axis != at):
        return 0
    index = _vector_of(indices[at]) or Insert(model, node)(torch.ops.aten.reshape.default, indices[at], [-1])
    places = [index if axis == at else None for axis in range(len(indices))]
    made = Insert(model, node)(_PUT_ROWS, node.args[0], places, *node.args[2:], **node.kwargs)
    node.replace_all_uses_with(made)
    model.graph.erase_node(node)
    return 1


def _look_up_by_input(model: GraphModule, node: Node) -> int:
    """Look rows up by an input that is a vector instead of by a view of it."""
    lookup = lookup_of(model, node)
    if lookup is None or operator_name(lookup.index) not in VIEWS:
        return 0
    index = _vector_of(lookup.index)
    if index is None or index.op != "placeholder":
        return 0
    call = Insert(model, node)
    changed = [index if one is lookup.index else one for one in node.args]
    if operator_name(node) == _INDEX:
        changed[1] = [index if one is lookup.index else one for one in node.args[1]]  # type: ignore[union-attr]
    made = call(node.target, *changed, **node.kwargs)
    node.replace_all_uses_with(call(torch.ops.aten.reshape.default, made, list(value_of(node).shape)))
    model.graph.erase_node(node)
    return 1


def _vector_of(index: Node) -> Node | None:
    """Return the vector that an index is a view of."""
    seen = index
    while operator_name(seen) in VIEWS and isinstance(seen.args[0], Node):
        seen = seen.args[0]
        if value_of(seen).dim() == 1 and value_of(seen).numel() == value_of(index).numel():
            return seen
    return None


def _picked_positions(model: GraphModule, node: Node) -> tuple[int, list[int] | None]:
    """Return the dimension of a constant index and the positions along it, counted from the front."""
    given = arguments(node)
    if operator_name(node) == _SELECT:
        dim, index = int(given["dim"]), given["index"]
    else:
        named = [(at, one) for at, one in enumerate(given["indices"]) if one is not None]
        if len(named) != 1:
            return 0, None
        dim, index = named[0]
    data: Any = tensor_of(model, index)
    if data is None or data.dim() != 1:
        return 0, None
    size = int(value_of(node.args[0]).shape[dim])
    if data.dtype == torch.bool:
        data = torch.nonzero(data).reshape(-1)
    return dim, [int(one) % size for one in data]


def _as_slice(model: GraphModule, node: Node, x: Any, dim: int, picked: list[int]) -> Node | None:
    """Return the selection as a slice, None if the positions are not evenly spaced."""
    step = picked[1] - picked[0] if len(picked) > 1 else 1
    if step < 1 or picked != list(range(picked[0], picked[-1] + 1, step)):
        return None
    return Insert(model, node)(torch.ops.aten.slice.Tensor, x, dim, picked[0], picked[-1] + 1, step)


def _as_rows(model: GraphModule, node: Node) -> int:
    """Rewrite any other constant index as rows of the flattened tensor; returns 0 if positions are not constant."""
    x: Any = node.args[0]
    shape = [int(size) for size in value_of(x).shape]
    constants = {source: tensor_of(model, source) for source in node.all_input_nodes if source is not x}
    if any(data is None for data in constants.values()) or not is_static(node) or not value_of(node).numel():
        return 0
    # The operator itself, run on positions, says which value comes from where.
    places = torch.arange(value_of(x).numel()).reshape(shape)
    args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda one: constants.get(one, places))
    found = node.target(*args, **kwargs).reshape(-1)  # type: ignore[operator]
    piece = _piece(found, shape)
    rows = found.reshape(-1, piece)[:, 0] // piece
    call, aten = Insert(model, node), torch.ops.aten
    with model.graph.inserting_before(node):
        constant = add_constant(model, "_picked_positions", rows.contiguous())
    flat = call(aten.reshape.default, x, [-1, piece])
    picked = call(aten.index_select.default, flat, 0, constant)
    node.replace_all_uses_with(call(aten.reshape.default, picked, list(value_of(node).shape)))
    model.graph.erase_node(node)
    return 1


def _as_lookup(model: GraphModule, node: Node) -> int:
    """Rewrite a gather whose positions are the same for all values behind the dimension; returns 0 for others."""
    given = arguments(node)
    x, index = given["self"], given["index"]
    shape, wanted = list(value_of(x).shape), list(value_of(index).shape)
    dim = int(given["dim"]) % max(len(shape), 1)
    if (
        not is_static(node)
        or not wanted
        or 0 in wanted
        or shape[:dim] != wanted[:dim]
        or shape[dim + 1 :] != wanted[dim + 1 :]
    ):
        return 0
    base = index
    while operator_name(base) in _REPEATS and len(value_of(base.args[0]).shape) == len(wanted):
        base = base.args[0]
    places = list(value_of(base).shape)
    if any(size != 1 for size in places[dim + 1 :]):
        return 0
    call, aten = Insert(model, node), torch.ops.aten
    if places != [*wanted[: dim + 1], *places[dim + 1 :]]:
        base = call(aten.expand.default, base, [*wanted[: dim + 1], *places[dim + 1 :]])
    sets = prod(shape[:dim])
    rows = call(aten.reshape.default, base, [sets, wanted[dim]])
    if sets > 1:
        with model.graph.inserting_before(node):
            first = add_constant(model, "_first_rows", torch.arange(sets).unsqueeze(1) * shape[dim])
        rows = call(aten.add.Tensor, rows, first)
    flat = call(aten.reshape.default, x, [sets * shape[dim], prod(shape[dim + 1 :])])
    picked = call(aten.index_select.default, flat, 0, call(aten.reshape.default, rows, [-1]))
    node.replace_all_uses_with(call(aten.reshape.default, picked, wanted))
    model.graph.erase_node(node)
    return 1


def _piece(found: torch.Tensor, shape: list[int]) -> int:
    """Return the largest number of values, of whole last dimensions, that stay together in the result."""
    best = piece = 1
    for size in reversed(shape):
        piece *= size
        if found.numel() % piece:
            break
        rows = found.reshape(-1, piece)
        together = rows == rows[:, :1] + torch.arange(piece)
        if not bool(together.all()) or bool((rows[:, 0] % piece).any()):
            break
        best = piece
    return best
