"""Weights that a file keeps as float16, for space, as the float32 constants that its operators compute with.

Before:  w = DEQUANTIZE(half); y = CONV_2D(x, w)
After:   y = CONV_2D(x, w)

Sparse ones are dense once a file is read: their DENSIFY goes too.
"""

from __future__ import annotations

from openneutron.litert.graph import DType, Graph, Operator


def widen_halves(graph: Graph) -> int:
    """Replace each DEQUANTIZE of a float16 constant, and each DENSIFY, by its result; returns how many. Graph outputs stay.

    The float16 constants stay in the list of tensors: `drop_tensors` takes away what nothing reads.

    Example:
        >>> widen_halves(model.main)
        74
    """
    outputs = set(graph.outputs)
    kept = []
    for op in graph.operators:
        if op.outputs and op.outputs[0] not in outputs and (_widens(graph, op) or _is_dense(graph, op)):
            stored, result = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
            assert stored.data is not None
            result.data = stored.data.astype(result.dtype.numpy)
            result.data.flags.writeable = False
        else:
            kept.append(op)
    gone = len(graph.operators) - len(kept)
    graph.operators = kept
    return gone


def _is_dense(graph: Graph, op: Operator) -> bool:
    """Return whether an operator unpacks a sparse constant, whose data are dense once the file is read."""
    if op.code != "DENSIFY" or min(op.inputs, default=-1) < 0 or not op.outputs:
        return False
    stored, result = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    return stored.is_constant and stored.dtype is result.dtype and stored.shape == result.shape


def _widens(graph: Graph, op: Operator) -> bool:
    if op.code != "DEQUANTIZE" or min(op.inputs, default=-1) < 0 or not op.outputs:
        return False
    half, result = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    return half.is_constant and half.dtype is DType.FLOAT16 and result.dtype is DType.FLOAT32
