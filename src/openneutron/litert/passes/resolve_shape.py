"""Sizes that a file leaves open and states as 1, though they follow from the inputs: a vector list of unknown length.

Before:  y = RESHAPE(x, [256, 96]): [1, 1], any sizes; z = FULLY_CONNECTED(y): [1, 384], any first size
After:   y: [256, 96]; z: [256, 384]

What constants decide is found by `check_sizes.py`, which refuses files that contradict them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from openneutron.litert.check_sizes import Shape, shapes_by_constants
from openneutron.litert.codes import CLAMPS
from openneutron.litert.graph import Graph, Operator
from openneutron.litert.operator_options import padding_name

# Operators whose output has the shape of their first input.
_SAME_SHAPE = (
    "ABS", "CAST", "CEIL", "COS", "CUMSUM", "DEQUANTIZE", "ELU", "EXP", "FLOOR", "GELU", "HARD_SWISH", "L2_NORMALIZATION",
    "LEAKY_RELU", "LOG", "LOG_SOFTMAX", "LOGICAL_NOT", "LOGISTIC", "NEG", "PRELU", "QUANTIZE", "REVERSE_V2", "ROUND", "RSQRT",
    "SIGN", "SIN", "SOFTMAX", "SQRT", "SQUARE", "TANH", "ZEROS_LIKE", *CLAMPS,
)  # fmt: skip
# Operators on pairs, or three, of elements.
_ELEMENTWISE = (
    "ADD", "DIV", "EQUAL", "FLOOR_DIV", "FLOOR_MOD", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "LOGICAL_AND",
    "LOGICAL_OR", "MAXIMUM", "MINIMUM", "MUL", "NOT_EQUAL", "POW", "SELECT_V2", "SQUARED_DIFFERENCE", "SUB",
)  # fmt: skip


def resolve_shape(graph: Graph, op: Operator) -> bool:
    """Give the operator's outputs the shapes that follow from its inputs; False where the file's own stay.

    Example:
        >>> resolve_shape(graph, graph.operators[35])
        True
    """
    tensors = [graph.tensors[at] for at in op.outputs]
    if not any(-1 in (one.shape_signature or ()) and one.data is None for one in tensors):
        return False
    found = shapes_by_constants(graph, op) or _shapes_by_inputs(graph, op)
    changed = False
    for tensor, shape in zip(tensors, found or (), strict=False):
        signature = tensor.shape_signature or ()
        if -1 not in signature or tensor.data is not None or shape is None or len(shape) != len(signature):
            continue
        if all(given in (-1, size) for given, size in zip(signature, shape, strict=True)):
            changed = changed or tensor.shape != shape
            tensor.shape = shape
    return changed


class _Inputs:
    """The shapes and constants of an operator's inputs."""

    def __init__(self, graph: Graph, op: Operator) -> None:
        self.op = op
        self.tensors = [graph.tensors[at] if at >= 0 else None for at in op.inputs]
        self.shapes = [one.shape for one in self.tensors if one is not None]

    def option(self, name: str, otherwise: Any = 0) -> Any:
        found = getattr(self.op.options, name, None)
        return otherwise if found is None else found

    def numbers(self, position: int) -> list[int]:
        """Return the values of a constant input."""
        tensor = self.tensors[position]
        if tensor is None or tensor.data is None:
            raise ValueError("it is computed")
        return [int(one) for one in tensor.data.reshape(-1)]


def _shapes_by_inputs(graph: Graph, op: Operator) -> list[Shape] | None:
    rule = _RULES.get(op.code)
    try:
        return None if rule is None else [rule(_Inputs(graph, op))]
    except (ValueError, IndexError, ZeroDivisionError):
        return None  # the operator's own limits say what is wrong


def _fully_connected(c: _Inputs) -> Shape:
    x, (outputs, inputs) = c.shapes[0], c.shapes[1]
    if c.option("keepNumDims", False):
        if x[-1] != inputs:
            raise ValueError("other columns")
        return (*x[:-1], outputs)
    rows, rest = divmod(int(np.prod(x)), inputs)
    if rest:
        raise ValueError("no whole rows")
    return rows, outputs


def _concatenated(c: _Inputs) -> Shape:
    shapes, axis = c.shapes, c.option("axis")
    rank = len(shapes[0])
    if not -rank <= axis < rank or any(len(shape) != rank for shape in shapes):
        raise ValueError("ranks differ")
    axis %= rank
    if len({(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}) > 1:
        raise ValueError("sides differ")
    return (*shapes[0][:axis], sum(shape[axis] for shape in shapes), *shapes[0][axis + 1 :])


def _window(c: _Inputs, kernel: tuple[int, int], channels: int) -> Shape:
    """Return the shape behind a convolution or pool of this window."""
    batch, *sides, _ = c.shapes[0]
    same = padding_name(c.option("padding")) == "SAME"
    strides = c.option("strideH"), c.option("strideW")
    dilations = c.option("dilationHFactor", 1), c.option("dilationWFactor", 1)
    made = []
    for side, size, stride, dilation in zip(sides, kernel, strides, dilations, strict=True):
        reach = 1 if same else (size - 1) * dilation + 1
        if side < reach:
            raise ValueError("the window is larger than its input")
        made.append((side - reach) // stride + 1)
    return (batch, *made, channels)


def _convolution(c: _Inputs) -> Shape:
    channels, height, width, _ = c.shapes[1]
    return _window(c, (height, width), channels)


def _depthwise(c: _Inputs) -> Shape:
    _, height, width, channels = c.shapes[1]
    return _window(c, (height, width), channels)


def _pool(c: _Inputs) -> Shape:
    return _window(c, (c.option("filterHeight"), c.option("filterWidth")), c.shapes[0][-1])


def _gather(c: _Inputs) -> Shape:
    x, places = c.shapes[:2]
    axis, batch = c.option("axis") % len(x), c.option("batchDims") % (len(places) + 1)
    return (*x[:axis], *places[batch:], *x[axis + 1 :])


def _pack(c: _Inputs) -> Shape:
    (shape,) = set(c.shapes)
    axis = c.option("axis") % (len(shape) + 1)
    return (*shape[:axis], len(c.shapes), *shape[axis:])


def _squeeze(c: _Inputs) -> Shape:
    x = c.shapes[0]
    given = [int(one) % len(x) for one in c.option("squeezeDims", ())]
    gone = given or [at for at, size in enumerate(x) if size == 1]
    if any(x[at] != 1 for at in gone):
        raise ValueError("a dimension is not 1")
    return tuple(size for at, size in enumerate(x) if at not in gone)


def _range(c: _Inputs) -> Shape:
    start, limit, delta = (number for at in range(3) for number in c.numbers(at))
    return (len(range(start, limit, delta)),)


def _spectrum(c: _Inputs) -> Shape:
    rows, length = c.numbers(1)
    return (*c.shapes[0][:-2], rows, length // 2 + 1)


def _product(c: _Inputs) -> Shape:
    a, b = c.shapes
    rows = a[-1] if c.option("adjX", False) else a[-2]
    columns = b[-2] if c.option("adjY", False) else b[-1]
    return (*np.broadcast_shapes(a[:-2], b[:-2]), rows, columns)


_RULES: dict[str, Callable[[_Inputs], Shape]] = {
    **dict.fromkeys(_SAME_SHAPE, lambda c: c.shapes[0]),
    **dict.fromkeys(_ELEMENTWISE, lambda c: tuple(np.broadcast_shapes(*c.shapes))),
    **dict.fromkeys(("AVERAGE_POOL_2D", "L2_POOL_2D", "MAX_POOL_2D"), _pool),
    "BATCH_MATMUL": _product,
    "CONCATENATION": _concatenated,
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _depthwise,
    "FULLY_CONNECTED": _fully_connected,
    "GATHER": _gather,
    "PACK": _pack,
    "RANGE": _range,
    "RFFT2D": _spectrum,
    "SQUEEZE": _squeeze,
}
