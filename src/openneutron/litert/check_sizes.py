"""Checks that constants which set the size of a result agree with its declared shape: LiteRT uses the constant, we the shape.

A tensor whose size the file leaves open, or that is computed from one, is not checked: its declared shape is a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from openneutron.errors import FormatError
from openneutron.litert.graph import Graph, Model, Operator

Shape = tuple[int, ...]
Shapes = Sequence[Shape | None]
# Operators whose result sizes are known only at run time, or that run other graphs or unknown code.
_OPEN_RESULTS = frozenset(
    {"CALL", "CUSTOM", "HASHTABLE_FIND", "IF", "NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "SPARSE_TO_DENSE",
     "STABLEHLO_CASE", "STABLEHLO_COMPOSITE", "STABLEHLO_CUSTOM_CALL", "STABLEHLO_WHILE", "UNIQUE", "VAR_HANDLE",
     "WHERE", "WHILE"}
)  # fmt: skip


class _Contradiction(Exception):
    """The constants contradict the input's shape; the message says how."""


def check_sizes(model: Model, source: str) -> None:
    """Raise FormatError, naming operator and tensor, where a constant contradicts the declared shapes.

    Example:
        >>> check_sizes(read_model(data), "model.tflite")
    """
    for number, graph in enumerate(model.graphs):
        _check_graph(graph, f"{source}, graph {number}")


def _check_graph(graph: Graph, where: str) -> None:
    open_sizes = {at for at, one in enumerate(graph.tensors) if -1 in (one.shape_signature or ())}
    for number, op in enumerate(graph.operators):
        rule = _RULES.get(op.code)
        sizes = [_numbers(graph, op, at) for at in rule.sizes if at < len(op.inputs)] if rule is not None else []
        follows = any(index in open_sizes for index in op.inputs)
        if op.code in _OPEN_RESULTS or follows or None in sizes:
            open_sizes.update(op.outputs)
            continue
        if rule is None or not op.outputs or any(index in open_sizes for index in op.outputs):
            continue
        try:
            wanted = rule.shapes(_Call(graph, op))
        except _Contradiction as error:
            name = graph.tensors[op.inputs[rule.sizes[0]] if rule.sizes[0] < len(op.inputs) else op.outputs[0]].name
            raise FormatError(f"{error} (tensor {name!r})", where=_place(where, number, op)) from None
        for index, shape in zip(op.outputs, wanted, strict=False):
            if shape is not None and shape != graph.tensors[index].shape:
                raise FormatError(
                    f"its constants make a result of {list(shape)}, tensor {index} ({graph.tensors[index].name!r}) is "
                    f"declared as {list(graph.tensors[index].shape)}",
                    where=_place(where, number, op),
                )


def shapes_by_constants(graph: Graph, op: Operator) -> Shapes | None:
    """Return the shapes that an operator's constants give its outputs; None where they are computed or contradict its input.

    Example:
        >>> shapes_by_constants(graph, graph.operators[3])
        [(1, 96, 511)]
    """
    rule = _RULES.get(op.code)
    sizes = [_numbers(graph, op, at) for at in rule.sizes if at < len(op.inputs)] if rule is not None else [None]
    if rule is None or None in sizes:
        return None
    try:
        return rule.shapes(_Call(graph, op))
    except _Contradiction:
        return None


def _place(where: str, number: int, op: Operator) -> str:
    return f"{where}, operator {number} ({op.label})"


def _numbers(graph: Graph, op: Operator, position: int) -> list[int] | None:
    """The values of a constant input; None where it is computed, or not given."""
    index = op.inputs[position]
    data = graph.tensors[index].data if index >= 0 else None
    return None if data is None or graph.tensors[index].dtype.is_opaque else [int(one) for one in data.reshape(-1)]


class _Call:
    """One operator with the helpers that rules use."""

    def __init__(self, graph: Graph, op: Operator) -> None:
        self.graph, self.op = graph, op

    def shape(self, position: int) -> Shape:
        """The declared shape of an input."""
        if position >= len(self.op.inputs) or self.op.inputs[position] < 0:
            raise _Contradiction(f"input {position} is missing")
        return self.graph.tensors[self.op.inputs[position]].shape

    def numbers(self, position: int) -> list[int]:
        """The values of a constant input."""
        self.shape(position)
        found = _numbers(self.graph, self.op, position)
        assert found is not None, "operators with sizes that are computed are not looked at"
        return found

    def axes(self, position: int, rank: int) -> list[int]:
        """A constant of axes, from the front."""
        return [self.axis(one, rank) for one in self.numbers(position)]

    def axis(self, axis: int, rank: int) -> int:
        if not -rank <= axis < rank:
            raise _Contradiction(f"there is no dimension {axis} in a tensor of rank {rank}")
        return axis % rank

    def option(self, name: str, otherwise: Any = 0) -> Any:
        found = getattr(self.op.options, name, None)
        return otherwise if found is None else found

    def long(self, position: int, count: int, what: str) -> list[int]:
        """Return the values of a constant input that must have `count` elements."""
        found = self.numbers(position)
        if len(found) != count:
            raise _Contradiction(f"it has {len(found)} {what} for {count} dimensions")
        return found


class _Rule:
    """Which inputs hold sizes, and the shapes that they give the outputs; None for an output that they leave open."""

    def __init__(self, sizes: tuple[int, ...], shapes: Callable[[_Call], Shapes]) -> None:
        self.sizes, self.shapes = sizes, shapes


def _reshape(c: _Call) -> Shapes:
    given = c.numbers(1) if len(c.op.inputs) > 1 and c.op.inputs[1] >= 0 else c.option("newShape")
    if isinstance(given, int) and given == 0:
        return [None]  # neither a constant nor an option
    wanted, size = [int(one) for one in given], prod(c.shape(0))
    if len(c.op.inputs) == 1 and wanted == [0]:
        wanted = []  # how old converters write a scalar
    if wanted.count(-1) > 1 or min(wanted, default=0) < -1:
        raise _Contradiction(f"the new shape {wanted} is none")
    known = prod(one for one in wanted if one != -1)
    if -1 in wanted and known and size % known == 0:
        wanted[wanted.index(-1)] = size // known
    if prod(wanted) != size or -1 in wanted:
        raise _Contradiction(f"the new shape {wanted} does not have the {size} elements of its input")
    return [tuple(wanted)]


def _broadcast(c: _Call) -> Shapes:
    x, wanted = c.shape(0), tuple(c.numbers(1))
    tail = wanted[len(wanted) - len(x) :]
    if len(x) > len(wanted) or any(a not in (1, b) for a, b in zip(x, tail, strict=True)):
        raise _Contradiction(f"shape {list(x)} does not broadcast to {list(wanted)}")
    return [wanted]


def _pad(c: _Call) -> Shapes:
    x = c.shape(0)
    pads = c.long(1, 2 * len(x), "paddings, two each,")
    if min(pads, default=0) < 0:
        raise _Contradiction(f"the paddings {pads} are negative")
    return [tuple(size + pads[2 * at] + pads[2 * at + 1] for at, size in enumerate(x))]


def _slice(c: _Call) -> Shapes:
    x = c.shape(0)
    begin, size = c.long(1, len(x), "begins"), c.long(2, len(x), "sizes")
    taken = tuple(n - b if s == -1 else s for n, b, s in zip(x, begin, size, strict=True))
    if any(b < 0 or s < 0 or b + s > n for n, b, s in zip(x, begin, taken, strict=True)):
        raise _Contradiction(f"begin {begin} and size {size} leave the input of {list(x)}")
    return [taken]


def _strided_slice(c: _Call) -> Shapes:
    """Bits of a mask count the entries of begin, end and strides; an ellipsis stands for all dimensions not named."""
    x = c.shape(0)
    begin = c.numbers(1)
    end, strides = c.long(2, len(begin), "ends"), c.long(3, len(begin), "strides")
    new, dots, gone = (int(c.option(name)) for name in ("newAxisMask", "ellipsisMask", "shrinkAxisMask"))
    first, last = int(c.option("beginMask")), int(c.option("endMask"))
    named = sum(1 for at in range(len(begin)) if not (dots | new) >> at & 1)
    if named > len(x) or sum(dots >> at & 1 for at in range(len(begin))) > 1 or 0 in strides:
        raise _Contradiction(f"its {len(begin)} begins, strides and masks do not fit a shape of {list(x)}")
    made: list[int] = []
    at_dimension = 0
    for at, step in enumerate(strides):
        if dots >> at & 1:
            made += x[at_dimension : at_dimension + len(x) - named]
            at_dimension += len(x) - named
            continue
        if new >> at & 1:
            made.append(1)
            continue
        size = x[at_dimension]
        at_dimension += 1
        if gone >> at & 1:
            if not -size <= begin[at] < size:
                raise _Contradiction(f"index {begin[at]} leaves a dimension of {size}")
            continue
        stop = begin[at] + end[at] if c.option("offset", False) else end[at]
        bounds = slice(None if first >> at & 1 else begin[at], None if last >> at & 1 else stop, step).indices(size)
        made.append(len(range(*bounds)))
    return [(*made, *x[at_dimension:])]


def _resize(c: _Call) -> Shapes:
    x = c.shape(0)
    height, width = c.long(1, 2, "sizes")
    if len(x) != 4:
        raise _Contradiction(f"its input of {list(x)} is no image")
    return [(x[0], height, width, x[3])]


def _fill(c: _Call) -> Shapes:
    return [tuple(c.numbers(0))]


def _tile(c: _Call) -> Shapes:
    x = c.shape(0)
    return [tuple(size * times for size, times in zip(x, c.long(1, len(x), "multiples"), strict=True))]


def _split_v(c: _Call) -> Shapes:
    x = c.shape(0)
    (axis,) = c.axes(2, len(x)) or [0]
    sizes = c.numbers(1)
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = x[axis] - sum(sizes) - 1
    if sum(sizes) != x[axis] or min(sizes, default=0) < 0 or len(sizes) != len(c.op.outputs):
        raise _Contradiction(
            f"sizes {sizes} of {len(c.op.outputs)} outputs do not make up the {x[axis]} of dimension {axis}"
        )
    return [(*x[:axis], size, *x[axis + 1 :]) for size in sizes]


def _split(c: _Call) -> Shapes:
    x = c.shape(1)
    (axis,) = c.axes(0, len(x)) or [0]
    count = len(c.op.outputs)
    if x[axis] % count:
        raise _Contradiction(f"{x[axis]} of dimension {axis} cannot be split into {count}")
    return [(*x[:axis], x[axis] // count, *x[axis + 1 :])] * count


def _transpose(c: _Call) -> Shapes:
    x = c.shape(0)
    order = [c.axis(one, len(x)) for one in c.long(1, len(x), "axes")]
    if sorted(order) != list(range(len(x))):
        raise _Contradiction(f"{order} is no order of {len(x)} dimensions")
    return [tuple(x[axis] for axis in order)]


def _expand_dims(c: _Call) -> Shapes:
    x = c.shape(0)
    (axis,) = c.axes(1, len(x) + 1) or [0]
    return [(*x[:axis], 1, *x[axis:])]


def _reduce(c: _Call) -> Shapes:
    x = c.shape(0)
    axes = set(c.axes(1, len(x)))
    if c.option("keepDims", False):
        return [tuple(1 if at in axes else size for at, size in enumerate(x))]
    return [tuple(size for at, size in enumerate(x) if at not in axes)]


def _to_batch(c: _Call) -> Shapes:
    x, block = c.shape(0), c.numbers(1)
    pads = c.long(2, 2 * len(block), "paddings, two each,")
    space = [x[1 + at] + pads[2 * at] + pads[2 * at + 1] for at in range(len(block))] if len(block) < len(x) else []
    if not space or min(block) < 1 or any(size % b for size, b in zip(space, block, strict=True)):
        raise _Contradiction(f"blocks {block} and paddings {pads} do not fit a shape of {list(x)}")
    return [(x[0] * prod(block), *(n // b for n, b in zip(space, block, strict=True)), *x[1 + len(block) :])]


def _to_space(c: _Call) -> Shapes:
    x, block = c.shape(0), c.numbers(1)
    crops = c.long(2, 2 * len(block), "crops, two each,")
    if len(block) >= len(x) or min(block, default=0) < 1 or x[0] % prod(block):
        raise _Contradiction(f"blocks {block} do not fit a shape of {list(x)}")
    space = [x[1 + at] * b - crops[2 * at] - crops[2 * at + 1] for at, b in enumerate(block)]
    return [(x[0] // prod(block), *space, *x[1 + len(block) :])]


_REDUCE = _Rule((1,), _reduce)
_RULES: dict[str, _Rule] = {
    "RESHAPE": _Rule((1,), _reshape), "BROADCAST_TO": _Rule((1,), _broadcast), "PAD": _Rule((1,), _pad),
    "PADV2": _Rule((1,), _pad), "MIRROR_PAD": _Rule((1,), _pad), "SLICE": _Rule((1, 2), _slice),
    "STRIDED_SLICE": _Rule((1, 2, 3), _strided_slice), "RESIZE_BILINEAR": _Rule((1,), _resize),
    "RESIZE_NEAREST_NEIGHBOR": _Rule((1,), _resize), "TRANSPOSE_CONV": _Rule((0,), _fill), "FILL": _Rule((0,), _fill),
    "TILE": _Rule((1,), _tile), "SPLIT_V": _Rule((1, 2), _split_v), "SPLIT": _Rule((0,), _split),
    "TRANSPOSE": _Rule((1,), _transpose), "EXPAND_DIMS": _Rule((1,), _expand_dims),
    "SPACE_TO_BATCH_ND": _Rule((1, 2), _to_batch), "BATCH_TO_SPACE_ND": _Rule((1, 2), _to_space),
    "MEAN": _REDUCE, "SUM": _REDUCE, "REDUCE_MAX": _REDUCE, "REDUCE_MIN": _REDUCE, "REDUCE_PROD": _REDUCE,
    "REDUCE_ANY": _REDUCE, "REDUCE_ALL": _REDUCE,
}  # fmt: skip
