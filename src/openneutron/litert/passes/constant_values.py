"""Computes operators on constants for folding: shape arithmetic on integers, and moves of any elements.

Example:
    >>> evaluate(graph, op, [np.array([1, 4, 4, 8], np.int32)])
    [array([1], dtype=int32)]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from openneutron.litert.codes import VIEWS
from openneutron.litert.graph import Array, DType, Graph, Operator, Tensor

# Folded constants are stored in the file; larger ones are cheaper to compute at run time.
LARGEST = 1 << 20
_WHOLE = (DType.INT32, DType.INT64, DType.BOOL)

Function = Callable[[Any, list[Array]], list[Array]]


def _numbers(array: Array) -> list[int]:
    return [int(value) for value in array.reshape(-1)]


def _strided_slice(options: Any, inputs: list[Array]) -> list[Array]:
    x, begin, end, strides = inputs
    if getattr(options, "offset", False):
        raise ValueError("ends as offsets")
    index: list[Any] = []
    for at, (first, last, step) in enumerate(zip(*map(_numbers, (begin, end, strides)), strict=True)):

        def has_bit(mask: int, at: int = at) -> bool:
            return bool(mask >> at & 1)

        if has_bit(options.ellipsisMask):
            index.append(Ellipsis)
        elif has_bit(options.newAxisMask):
            index.append(None)
        elif has_bit(options.shrinkAxisMask):
            index.append(first)
        else:
            bounds = (None if has_bit(options.beginMask) else first, None if has_bit(options.endMask) else last)
            index.append(slice(*bounds, step))
    return [np.asarray(x[tuple(index)])]


def _slice(_: Any, inputs: list[Array]) -> list[Array]:
    x, begin, size = inputs
    ends = (None if s == -1 else b + s for b, s in zip(_numbers(begin), _numbers(size), strict=True))
    return [x[tuple(slice(b, e) for b, e in zip(_numbers(begin), ends, strict=True))]]


def _split(options: Any, inputs: list[Array]) -> list[Array]:
    axis, x = inputs
    return list(np.split(x, options.numSplits, int(axis.reshape(()))))


def _split_v(_: Any, inputs: list[Array]) -> list[Array]:
    x, sizes, axis = inputs
    counts = _numbers(sizes)
    counts = [x.shape[int(axis.reshape(()))] - sum(counts) - 1 if one == -1 else one for one in counts]
    return list(np.split(x, np.cumsum(counts)[:-1], int(axis.reshape(()))))


def _fill(_: Any, inputs: list[Array]) -> list[Array]:
    return [np.full(_numbers(inputs[0]), inputs[1].reshape(()))]


def _range(_: Any, inputs: list[Array]) -> list[Array]:
    start, limit, delta = (int(one.reshape(())) for one in inputs)
    return [np.arange(start, limit, delta, dtype=inputs[0].dtype)]


def _tile(_: Any, inputs: list[Array]) -> list[Array]:
    return [np.tile(inputs[0], _numbers(inputs[1]))]


def _broadcast_to(_: Any, inputs: list[Array]) -> list[Array]:
    return [np.broadcast_to(inputs[0], _numbers(inputs[1]))]


def _gather(options: Any, inputs: list[Array]) -> list[Array]:
    if options is not None and options.batchDims:
        raise ValueError("batch dimensions")
    if inputs[1].size and inputs[1].min() < 0:
        raise ValueError("a negative index")
    return [np.take(inputs[0], inputs[1], axis=0 if options is None else options.axis)]


def _binary(function: Callable[[Array, Array], Array]) -> Function:
    return lambda _, inputs: [np.asarray(function(*inputs))]


def _reduction(function: Callable[..., Array]) -> Function:
    def reduce(options: Any, inputs: list[Array]) -> list[Array]:
        axes = tuple(set(np.arange(inputs[0].ndim)[_numbers(inputs[1])].tolist())) if inputs[0].ndim else None
        return [np.asarray(function(inputs[0], axis=axes, keepdims=options.keepDims, dtype=inputs[0].dtype))]

    return reduce


def _reshape(_: Any, inputs: list[Array]) -> list[Array]:
    return [inputs[0]]  # the output's own shape is the new one, which the caller gives it


MOVES: dict[str, Function] = {
    **dict.fromkeys(sorted(VIEWS), _reshape),
    "BROADCAST_TO": _broadcast_to,
    "CONCATENATION": lambda options, inputs: [np.concatenate(inputs, options.axis)],
    "FILL": _fill,
    "GATHER": _gather,
    "PACK": lambda options, inputs: [np.stack(inputs, options.axis)],
    "SLICE": _slice,
    "SPLIT": _split,
    "SPLIT_V": _split_v,
    "STRIDED_SLICE": _strided_slice,
    "TILE": _tile,
    "TRANSPOSE": lambda _, inputs: [np.transpose(inputs[0], _numbers(inputs[1]))],
    "UNPACK": lambda options, inputs: [
        np.take(inputs[0], at, options.axis) for at in range(inputs[0].shape[options.axis])
    ],
}
_PAIRS: dict[str, Function] = {
    "ADD": _binary(np.add),
    "EQUAL": _binary(np.equal),
    "FLOOR_DIV": _binary(np.floor_divide),
    "FLOOR_MOD": _binary(np.mod),
    "GREATER": _binary(np.greater),
    "GREATER_EQUAL": _binary(np.greater_equal),
    "LESS": _binary(np.less),
    "LESS_EQUAL": _binary(np.less_equal),
    "LOGICAL_AND": _binary(np.logical_and),
    "LOGICAL_OR": _binary(np.logical_or),
    "MAXIMUM": _binary(np.maximum),
    "MINIMUM": _binary(np.minimum),
    "MUL": _binary(np.multiply),
    "NOT_EQUAL": _binary(np.not_equal),
    "SUB": _binary(np.subtract),
}
ARITHMETIC: dict[str, Function] = {
    **_PAIRS,
    "CAST": lambda _, inputs: [inputs[0]],
    "LOGICAL_NOT": lambda _, inputs: [np.logical_not(inputs[0])],
    "RANGE": _range,
    "REDUCE_PROD": _reduction(np.prod),
    "SUM": _reduction(np.sum),
}


# How many elements an operator makes of its inputs, where it may be more than they have. A file can state any shape for its
# result, so this is found from the inputs before anything is made.
_SIZES: dict[str, Callable[[Any, list[Array]], int]] = {
    **dict.fromkeys(
        _PAIRS,
        lambda _, inputs: math.prod(np.broadcast_shapes(*(one.shape for one in inputs))),
    ),
    "BROADCAST_TO": lambda _, inputs: math.prod(_numbers(inputs[1])),
    "CONCATENATION": lambda _, inputs: sum(one.size for one in inputs),
    "FILL": lambda _, inputs: math.prod(_numbers(inputs[0])),
    "GATHER": lambda options, inputs: (
        inputs[1].size * inputs[0].size // max(inputs[0].shape[0 if options is None else options.axis], 1)
    ),
    "PACK": lambda _, inputs: sum(one.size for one in inputs),
    "RANGE": lambda _, inputs: len(range(*(int(one.reshape(())) for one in inputs))),
    "TILE": lambda _, inputs: inputs[0].size * math.prod(_numbers(inputs[1])),
}
# How many results it makes, which the file states a second time in its list of outputs.
_RESULTS: dict[str, Callable[[Any, list[Array]], int]] = {
    "SPLIT": lambda options, _: int(options.numSplits),
    "SPLIT_V": lambda _, inputs: int(inputs[1].size),
    "UNPACK": lambda options, inputs: int(inputs[0].shape[options.axis]),
}


def _as_stated(code: str, options: Any, inputs: list[Array], outputs: list[Tensor]) -> bool:
    """Return whether the operator's results are as large as the file declares."""
    stated = sum(tensor.elements for tensor in outputs)
    size, results = _SIZES.get(code), _RESULTS.get(code)
    return (size is None or size(options, inputs) == stated) and (
        results is None or results(options, inputs) == len(outputs)
    )


def evaluate(graph: Graph, op: Operator, inputs: list[Array]) -> list[Array] | None:
    """Return the operator's outputs with the types and shapes that the file declares; None when it cannot be folded."""
    outputs = [graph.tensors[t] for t in op.outputs]
    tensors = [graph.tensors[t] for t in op.inputs] + outputs
    move, arithmetic = MOVES.get(op.code), ARITHMETIC.get(op.code)
    if arithmetic is not None and all(t.dtype in _WHOLE and t.quantization is None for t in tensors):
        function = arithmetic
    elif move is not None and not any(t.dtype.is_opaque for t in tensors) and _keeps_values(graph, op):
        function = move
    else:
        return None
    if getattr(op.options, "fusedActivationFunction", 0):
        return None
    try:
        if not _as_stated(op.code, op.options, inputs, outputs):
            return None
        with np.errstate(all="ignore"):
            made = function(op.options, inputs)
    except (ValueError, IndexError, TypeError, AttributeError, ZeroDivisionError, OverflowError, MemoryError):
        return None  # the operator's own limits report what is wrong
    if len(made) != len(outputs):
        return None
    for at, (value, tensor) in enumerate(zip(made, outputs, strict=True)):
        viewed = op.code in VIEWS
        if value.size != tensor.elements or not (viewed or value.shape == tensor.shape):
            return None
        if op.code == "FLOOR_DIV" and not inputs[1].all():
            return None
        fitted = np.array(value.reshape(tensor.shape), tensor.dtype.numpy, order="C")
        fitted.flags.writeable = False
        made[at] = fitted
    return made


def _keeps_values(graph: Graph, op: Operator) -> bool:
    """Return whether all inputs that are data (not counts or axes) have the output's type and quantization."""
    y = graph.tensors[op.outputs[0]]
    data = {"SPLIT": op.inputs[1:2], "CONCATENATION": op.inputs, "PACK": op.inputs, "FILL": op.inputs[1:2]}
    moved = [graph.tensors[t] for t in data.get(op.code, op.inputs[:1])]
    return all(t.dtype is y.dtype and t.quantization == y.quantization for t in moved)
