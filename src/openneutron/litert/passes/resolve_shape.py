"""Sizes that a file leaves open and states as 1, though they follow from the inputs: a vector list of unknown length.

Before:  y = RESHAPE(x, [256, 96]): [1, 1], any sizes; z = FULLY_CONNECTED(y): [1, 384], any first size
After:   y: [256, 96]; z: [256, 384]
"""

from __future__ import annotations

from math import prod

from openneutron.litert.codes import CLAMPS
from openneutron.litert.graph import Array, Graph, Operator, Tensor

# Operators whose output has the shape of their first input.
_SAME_SHAPE = frozenset(
    [
        "ABS",
        "DEQUANTIZE",
        "ELU",
        "EXP",
        "GELU",
        "HARD_SWISH",
        "LEAKY_RELU",
        "LOG",
        "LOGISTIC",
        "NEG",
        "QUANTIZE",
        *CLAMPS,
        "RSQRT",
        "SOFTMAX",
        "SQRT",
        "TANH",
    ]
)


def resolve_shape(graph: Graph, op: Operator) -> bool:
    """Give the operator's output the shape that follows from its inputs; False where the file's own stays.

    Example:
        >>> resolve_shape(graph, graph.operators[35])
        True
    """
    if len(op.outputs) != 1 or not op.inputs or op.inputs[0] < 0:
        return False
    x, y = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    signature = y.shape_signature
    if signature is None or -1 not in signature or y.data is not None:
        return False
    shape = _next_shape(graph, op, x)
    if shape is None or shape == y.shape or len(shape) != len(signature):
        return False
    if any(given not in (-1, size) for given, size in zip(signature, shape, strict=True)):
        return False
    y.shape = shape
    return True


def _next_shape(graph: Graph, op: Operator, x: Tensor) -> tuple[int, ...] | None:
    second = graph.tensors[op.inputs[1]] if len(op.inputs) > 1 and op.inputs[1] >= 0 else None
    if op.code in _SAME_SHAPE:
        return x.shape
    if op.code == "RESHAPE" and second is not None and second.data is not None and second.data.dtype.kind == "i":
        return _complete_shape(x, [int(size) for size in second.data.reshape(-1)])
    if op.code == "FULLY_CONNECTED" and second is not None and len(second.shape) == 2 and second.shape[1] > 0:
        outputs, inputs = second.shape
        if getattr(op.options, "keepNumDims", False):
            return (*x.shape[:-1], outputs) if x.shape and x.shape[-1] == inputs else None
        return (x.elements // inputs, outputs) if x.elements % inputs == 0 else None
    if op.code == "SLICE" and len(op.inputs) == 3:
        return _slice_shape(x, *(graph.tensors[index].data for index in op.inputs[1:] if index >= 0))
    if op.code == "CONCATENATION":
        return _concatenated_shape(
            [graph.tensors[index].shape for index in op.inputs if index >= 0], getattr(op.options, "axis", 0)
        )
    return None


def _slice_shape(x: Tensor, begin: Array | None = None, size: Array | None = None) -> tuple[int, ...] | None:
    if begin is None or size is None or {begin.dtype.kind, size.dtype.kind} != {"i"}:
        return None
    if not begin.size == size.size == len(x.shape):
        return None
    rows = zip(x.shape, begin.reshape(-1).tolist(), size.reshape(-1).tolist(), strict=True)
    counts = [(whole, first, whole - first if count == -1 else count) for whole, first, count in rows]
    if any(first < 0 or count < 0 or first + count > whole for whole, first, count in counts):
        return None
    return tuple(count for _, _, count in counts)


def _concatenated_shape(shapes: list[tuple[int, ...]], axis: int) -> tuple[int, ...] | None:
    rank = len(shapes[0])
    if not -rank <= axis < rank or any(len(shape) != rank for shape in shapes):
        return None
    axis %= rank
    around = {(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}
    if len(around) > 1:
        return None
    return (*shapes[0][:axis], sum(shape[axis] for shape in shapes), *shapes[0][axis + 1 :])


def _complete_shape(x: Tensor, sizes: list[int]) -> tuple[int, ...] | None:
    known = prod(size for size in sizes if size != -1)
    if min(sizes, default=0) < -1 or sizes.count(-1) > 1 or known < 1:
        return None
    if -1 in sizes:
        if x.elements % known:
            return None
        sizes = [x.elements // known if size == -1 else size for size in sizes]
    return tuple(sizes) if prod(sizes) == x.elements else None
