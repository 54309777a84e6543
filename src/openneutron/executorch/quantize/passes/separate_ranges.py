"""SeparateRanges: joined tensors whose parts have so different ranges that one scale would lose the smaller ones.

At the end of a network, where only data moves behind the join, the parts are dequantized and then joined in float:

Before:  y = cat([boxes, scores], 1).permute(0, 2, 1)             boxes in 0..640, scores in 0..1
After:   y = cat([boxes.permute(0, 2, 1), scores.permute(0, 2, 1)], 2), and the cat is computed in float

In the middle of a network the join, and the layers that read it, compute with 16-bit activations, where they can. So does a
product with a constant whose factors differ so much that 8 bits would make the smaller ones zero, strides of 640 and 1; one
that is an output already where its factors differ as much as parts of a join may.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, Final

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import FloatReason, arguments, is_static, operator_name, shape_of, value_of
from openneutron.executorch.operators import annotation_rules
from openneutron.executorch.quantize.check.keep_float import mark_float, why_float
from openneutron.executorch.quantize.measure.piece_labels import only_moves
from openneutron.executorch.quantize.passes._attributes import tensor_of
from openneutron.executorch.quantize.passes._insert import ROLE_KEY, Insert
from openneutron.executorch.quantize.passes._ranges import seen_range
from openneutron.executorch.upstream.names import is_erased

# A part with a sixteenth of the range keeps 4 of 8 bits: 16 levels, below which scores no longer have an order.
MIXED: Final = 16.0
_LOST: Final = 254.0  # times a factor, of which 127 steps make zero
_PRODUCTS: Final = frozenset({"aten.mul.Tensor", "aten.mul_.Tensor"})
JOINS: Final = frozenset({
    "aten.cat.default", "aten.concat.default", "aten.concatenate.default", "aten.stack.default",
})  # fmt: skip
PERMUTES: Final = frozenset({
    "aten.permute.default", "aten.transpose.int", "aten.swapaxes.default", "aten.movedim.int", "aten.t.default",
})  # fmt: skip
_RESHAPES: Final = frozenset({
    "aten.view.default", "aten.reshape.default", "aten.flatten.using_ints", "aten.unflatten.int",
    "aten.squeeze.default", "aten.squeeze.dim", "aten.squeeze.dims", "aten.unsqueeze.default",
})  # fmt: skip
_COPIES: Final = frozenset({"aten.clone.default", "aten.contiguous.default"})
# Layers whose 16-bit forms run on the NPU for every shape that their INT8 forms do.
_WIDE_READERS: Final = frozenset(
    f"aten.{name}"
    for name in ("conv1d.default", "conv2d.default", "conv2d.padding", "linear.default", "add.Tensor", "mul.Tensor",
                 "sub.Tensor", "relu.default", "matmul.default", "bmm.default")
)  # fmt: skip
_WIDE: Final = "openneutron_wide"  # metadata key of nodes that get 16-bit activations


def is_marked_wide(node: Node) -> bool:
    """Return whether the node reads or makes a tensor that needs 16 bits, unless the user chose its precision."""
    return bool(node.meta.get(_WIDE))


def separate_ranges(model: GraphModule) -> int:
    """Mark and move the joins of parts of different ranges; returns how many there are."""
    mixed = [node for node in model.graph.nodes if _is_mixed(model, node)]
    final: list[Node] = []
    for join in mixed:
        ends = {user for one in _moved_nodes(join) for user in one.users if not only_moves(user)}
        readers = {user for user in ends if user.op != "output"}
        if len(ends) > len(readers):
            final.append(_twin(model, join) if readers else join)
        _widen(join, readers)
    floating = dict.fromkeys(one for join in final for one in _moved_nodes(join))
    for one in floating:
        mark_float(one, FloatReason.MIXED)
    for join in [one for one in floating if operator_name(one) in JOINS]:
        if not is_erased(join):
            _sink(model, join)
    return len(mixed) + _widen_products(model)


def _widen_products(model: GraphModule) -> int:
    """Mark products with a constant of very different factors for 16-bit activations; returns how many there are."""
    count = 0
    for node in model.graph.nodes:
        if operator_name(node) not in _PRODUCTS or why_float(node) is not None:
            continue
        data = [tensor_of(model, one) for one in node.all_input_nodes]
        sizes = [one.abs()[one != 0] for one in data if one is not None and one.is_floating_point()]
        times = MIXED if any(user.op == "output" for one in _moved_nodes(node) for user in one.users) else _LOST
        if any(one.numel() and times * float(one.min()) < float(one.max()) < math.inf for one in sizes):
            node.meta[_WIDE] = True
            count += 1
    return count


def describe_mixed(model: GraphModule) -> list[str]:
    """Return a sentence for each kind of join that `separate_ranges` changed, naming the nodes."""
    apart = [
        node for node in model.graph.nodes if why_float(node) is FloatReason.MIXED and operator_name(node) in JOINS
    ]
    wide = [node for node in model.graph.nodes if is_marked_wide(node) and operator_name(node) in JOINS]
    found = []
    if apart:
        found.append(
            f"{_names(apart)}: parts of different ranges are joined in float, so that each keeps its own scale"
        )
    if wide:
        found.append(f"{_names(wide)}: parts of different ranges are joined, and read, with 16-bit activations")
    return found


def _names(nodes: Sequence[Node]) -> str:
    return ", ".join(node.name for node in nodes)


def _is_mixed(model: GraphModule, node: Node) -> bool:
    """Return whether a join has parts whose ranges, of which each includes 0, differ by more than `MIXED`."""
    if operator_name(node) not in JOINS or ROLE_KEY in node.meta or not is_static(node) or why_float(node) is not None:
        return False
    value = value_of(node)
    if not isinstance(value, torch.Tensor) or value.dtype != torch.float32:
        return False
    sizes = [size for part in node.args[0] if (size := _range(model, part)) > 0]  # type: ignore[union-attr]
    return len(sizes) > 1 and max(sizes) > MIXED * min(sizes)


def _range(model: GraphModule, part: Any) -> float:
    """Return the width of a part's range with 0 in it; 0 where it is not known, or zero everywhere."""
    if part.op == "get_attr":
        data = tensor_of(model, part)
        if data is None or not data.numel():
            return 0.0
        finite = data[torch.isfinite(data)]
        low, high = map(float, torch.aminmax(finite)) if finite.numel() else (0.0, 0.0)
    else:
        low, high = seen_range(model, part) or (0.0, 0.0)
    return max(high, 0.0) - min(low, 0.0)


def _moved_nodes(join: Node) -> list[Node]:
    """Return a join or product and everything behind it that only moves its data, in graph order."""
    found = {join}
    waiting = [join]
    while waiting:
        new = [user for user in waiting.pop().users if user not in found and only_moves(user)]
        found.update(new)
        waiting += new
    return sorted(found)


def _twin(model: GraphModule, join: Node) -> Node:
    """Copy a join, and what moves its data, for the outputs; the given one keeps the other readers."""
    made: dict[Node, Node] = {}
    for one in _moved_nodes(join):
        outputs = [user for user in one.users if user.op == "output"]
        with model.graph.inserting_after(one):
            made[one] = model.graph.node_copy(one, lambda source: made.get(source, source))
        made[one].meta = dict(one.meta)
        for user in outputs:
            user.replace_input_with(one, made[one])
    return made[join]


def _widen(join: Node, readers: Collection[Node]) -> None:
    """Mark a join and its readers for 16-bit activations, if all readers have a form for them."""
    moved = _moved_nodes(join)
    if readers and all(operator_name(one) in _WIDE_READERS for one in readers) and all(map(_has_wide_form, moved)):
        for one in (*moved, *readers):
            one.meta[_WIDE] = True


def _has_wide_form(node: Node) -> bool:
    rule = annotation_rules().get(operator_name(node))
    return rule is None or rule.wide


def _sink(model: GraphModule, join: Node) -> None:
    """Move the permutes and reshapes behind a join to its parts, which are computed before they are dequantized."""
    for user in list(join.users):
        moved = _over(join, user, Insert(model, user)) if user.op == "call_function" else None
        if moved is None:
            continue
        user.replace_all_uses_with(moved)
        model.graph.erase_node(user)
        for part in moved.args[0]:  # type: ignore[union-attr]
            inner = part.args[0] if only_moves(part) else None  # type: ignore[union-attr,arg-type]
            if isinstance(inner, Node) and operator_name(inner) in JOINS and why_float(inner) is not None:
                _sink(model, inner)
        _sink(model, moved)
    if not join.users:
        model.graph.erase_node(join)


def _over(join: Node, user: Node, call: Insert) -> Node | None:
    """Return a join of moved parts that equals the moved join; None where the parts cannot be moved alone."""
    name, given = operator_name(user), arguments(user)
    if name not in (*_COPIES, *PERMUTES, *_RESHAPES):
        return None
    rank = len(shape_of(join))
    dim = int(arguments(join).get("dim") or 0) % rank
    parts = list(join.args[0])  # type: ignore[arg-type]
    if operator_name(join) == "aten.stack.default":
        parts = [_float(call(torch.ops.aten.unsqueeze.default, part, dim), part) for part in parts]
    if name in _COPIES:
        return _join(call, parts, dim)
    if any(len(shape_of(part)) != rank for part in parts):
        return None
    if name in PERMUTES:
        order = permute_order(name, given, rank)
        moved = [_float(call(torch.ops.aten.permute.default, part, order), part) for part in parts]
        return _join(call, moved, order.index(dim))
    before, after = shape_of(join), shape_of(user)
    axis = _same_axis(before, after, dim)
    if axis is None:
        return None
    sizes = [[*after[:axis], shape_of(part)[dim], *after[axis + 1 :]] for part in parts]
    moved = [
        _float(call(torch.ops.aten.reshape.default, part, size), part) for part, size in zip(parts, sizes, strict=True)
    ]
    return _join(call, moved, axis)


def _join(call: Insert, parts: Sequence[Node], dim: int) -> Node:
    made = call(torch.ops.aten.cat.default, list(parts), dim)
    mark_float(made, FloatReason.MIXED)
    return made


def _float(moved: Node, part: Node) -> Node:
    """Mark a moved part as the part is: a new node inherits the mark of the node it replaces."""
    mark_float(moved, why_float(part))
    return moved


def permute_order(name: str, given: dict[str, Any], rank: int) -> list[int]:
    """Return the dimensions of a permute, each as the number it had before."""
    order = list(range(rank))
    if name == "aten.permute.default":
        return [int(dim) % rank for dim in given["dims"]]
    if name == "aten.movedim.int":
        source = int(given["source"]) % rank
        order.remove(source)
        order.insert(int(given["destination"]) % rank, source)
        return order
    first, second = (
        (0, rank - 1) if name == "aten.t.default" else [int(dim) % rank for dim in list(given.values())[1:3]]
    )
    order[first], order[second] = order[second], order[first]
    return order


def _same_axis(before: Sequence[int], after: Sequence[int], dim: int) -> int | None:
    """Return the axis of `after` along which the elements of axis `dim` of `before` lie; None if a reshape splits them."""
    for axis, size in enumerate(after):
        if size == before[dim] and math.prod(after[:axis]) == math.prod(before[:dim]):
            return axis
    return None
