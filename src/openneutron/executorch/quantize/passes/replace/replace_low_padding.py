"""ReplaceLowPadding: constants far below every value, put in front of a maximum, become the smallest of these values.

Before:  y = max_pool2d(pad(x, value=-inf))            y = amax(masked_fill(x, mask, -1e9), 1)
After:   y = max_pool2d(pad(x, value=low))             y = amax(masked_fill(x, mask, low), 1)        low: smallest x

A sum with a mask, x + mask * -1e4, becomes a masked_fill too. A maximum over at least one real value is the same. With the
number itself in the range of a tensor, all other values would have a single step; minus infinity has none at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.measure.piece_labels import only_moves
from openneutron.executorch.quantize.passes._attributes import add_constant, tensor_of
from openneutron.executorch.quantize.passes._insert import Insert
from openneutron.executorch.quantize.passes._masks import FORBIDDEN, NEVER
from openneutron.executorch.quantize.passes._ranges import seen_range
from openneutron.executorch.quantize.passes.replace.replace_additive_mask import (
    SUMS,
    allowed_positions,
    is_given_mask,
)

_MAXIMA: Final = frozenset(
    f"aten.{name}"
    for name in ("max_pool1d.default", "max_pool2d.default", "max_pool2d_with_indices.default", "amax.default",
                 "max.dim", "max.default", "adaptive_max_pool1d.default", "adaptive_max_pool2d.default")
)  # fmt: skip
# By operator: the argument that is the number, and those that are values.
_NUMBERS: Final = {
    "aten.pad.default": ("value", ("self",)),
    "aten.constant_pad_nd.default": ("value", ("self",)),
    "aten.masked_fill.Scalar": ("value", ("self",)),
    "aten.where.ScalarOther": ("other", ("self",)),
    "aten.where.ScalarSelf": ("self", ("other",)),
    "aten.full.default": ("fill_value", ()),
    "aten.full_like.default": ("fill_value", ()),
}
_SIDES: Final = {"aten.where.self": ("self", "other"), "aten.masked_fill.Tensor": ("self", "value")}

_Sums: TypeAlias = dict[Node, tuple[Node, Node]]  # of values and a mask: the values, and where the mask allows them


@dataclass
class _Found:
    """What a maximum reads: computed values, and constants by the node that brings them."""

    values: list[Node] = field(default_factory=list)
    numbers: dict[Node, float] = field(default_factory=dict)
    sums: _Sums = field(default_factory=dict)


def replace_low_padding(model: GraphModule) -> int:
    """Rewrite the graph in place; returns the number of rewritten maxima."""
    count = 0
    for node in list(model.graph.nodes):
        value = value_of(node.args[0]) if operator_name(node) in _MAXIMA else None
        if not isinstance(value, torch.Tensor) or value.dtype != torch.float32:
            continue
        found = _Found()
        _collect(model, node.args[0], found)
        low = _lowest(model, found)
        if low is not None:
            _rewrite(model, node, low, found.sums)
            count += 1
        elif found.sums:
            model.graph.eliminate_dead_code()  # what says where these masks allow values
    return count


def _collect(model: GraphModule, node: Any, found: _Found) -> None:
    """Collect what a value is made of, through operators that move, pad or choose."""
    data = tensor_of(model, node)
    name = operator_name(node)
    if data is not None:
        if data.is_floating_point() and data.numel():
            found.numbers[node] = float(data.amin())
    elif name in _NUMBERS and arguments(node).get("mode", "constant") == "constant":
        number = arguments(node)[_NUMBERS[name][0]]
        if isinstance(number, (int, float)):
            found.numbers[node] = float(number)
        elif number is not None:
            found.values.append(node)
            return
        for one in _NUMBERS[name][1]:
            _collect(model, arguments(node)[one], found)
    elif name in SUMS and (parts := _masked_sum(model, node)) is not None:
        found.numbers[node] = NEVER
        found.sums[node] = parts
        _collect(model, parts[0], found)
    elif name in _SIDES or only_moves(node):
        for one in _moved_values(node):
            _collect(model, one, found)
    else:
        found.values.append(node)


def _masked_sum(model: GraphModule, node: Node) -> tuple[Node, Node] | None:
    """Return the values of a sum with a mask, and where they are allowed; None for any other sum."""
    if len(node.args) != 2 or node.kwargs or not all(isinstance(one, Node) for one in node.args):
        return None
    call = Insert(model, node)
    for values, mask in (node.args, node.args[::-1]):
        allowed = allowed_positions(model, call, mask)
        if allowed is None and is_given_mask(model, mask):
            allowed = call(torch.ops.aten.gt.Scalar, mask, FORBIDDEN)
        if allowed is not None:
            return values, allowed
    return None


def _moved_values(node: Node) -> Iterator[Node]:
    """Yield the float values that an operator moves or chooses from."""
    given = arguments(node)
    sources = [given[one] for one in _SIDES[operator_name(node)]] if operator_name(node) in _SIDES else node.args[:1]
    for one in sources:
        yield from one if isinstance(one, (list, tuple)) else [one]


def _lowest(model: GraphModule, found: _Found) -> float | None:
    """Return the smallest computed value, None where no constant is far below it."""
    ranges = [seen_range(model, one) for one in found.values]
    known = [one for one in ranges if one is not None]
    if not known or len(known) < len(ranges):
        return None
    low, high = min(one[0] for one in known), max(one[1] for one in known)
    is_far = any(number < low - max(high - low, abs(low)) for number in found.numbers.values())
    return low if is_far else None


def _rewrite(model: GraphModule, node: Node, low: float, sums: _Sums) -> None:
    """Insert the maximum again behind copies of what it reads, in which no constant is below `low`.

    The maximum is inserted again so that the region that a check compares ends with it: padding may differ, maxima may not.
    """
    call = Insert(model, node)
    made = call(node.target, _raise(model, call, node.args[0], low, sums), *node.args[1:], **node.kwargs)
    node.replace_all_uses_with(made)
    name = node.name
    model.graph.erase_node(node)
    made.name = name


def _raise(model: GraphModule, call: Insert, node: Any, low: float, sums: _Sums) -> Any:
    """Return a copy of a value whose constants are `low` where they were below; the same node where it has none."""
    data = tensor_of(model, node)
    name = operator_name(node)
    if data is not None:
        if not data.is_floating_point() or not bool((data < low).any()):
            return node
        with model.graph.inserting_before(call.node):
            return add_constant(model, "_padding", data.clamp(min=low))
    if node in sums:
        values, allowed = sums[node]
        forbidden = call(torch.ops.aten.logical_not.default, allowed)
        return call(torch.ops.aten.masked_fill.Scalar, _raise(model, call, values, low, sums), forbidden, low)
    given = dict(arguments(node)) if node.op == "call_function" else {}
    if name in _NUMBERS and given.get("mode", "constant") == "constant":
        key, sides = _NUMBERS[name]
        changed = {one: _raise(model, call, given[one], low, sums) for one in sides}
        if isinstance(given[key], (int, float)):
            changed[key] = max(float(given[key]), low)
    elif name in _SIDES:
        changed = {one: _raise(model, call, given[one], low, sums) for one in _SIDES[name]}
    elif only_moves(node):
        first = map_arg(node.args[0], lambda one: _raise(model, call, one, low, sums))
        return node if first == node.args[0] else call(node.target, first, *node.args[1:], **node.kwargs)
    else:
        return node
    if all(changed[key] == given[key] for key in changed):
        return node
    return call(node.target, *_with(node, changed), **{**node.kwargs, **_keyword_arguments(node, changed)})


def _with(node: Node, changed: dict[str, Any]) -> tuple[Any, ...]:
    """Return the arguments by position, with those that changed."""
    names = list(arguments(node))
    return tuple(changed.get(name, value) for name, value in zip(names, node.args, strict=False))


def _keyword_arguments(node: Node, changed: dict[str, Any]) -> dict[str, Any]:
    """Return the changed arguments that were given by name, or not at all."""
    names = list(arguments(node))[: len(node.args)]
    return {name: value for name, value in changed.items() if name not in names}
