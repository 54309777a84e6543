"""Weights that a file keeps as float16, for space, as the float32 constants that its operators compute with.

Before:  w = DEQUANTIZE(half); y = CONV_2D(x, w)
After:   y = CONV_2D(x, w)
"""

from __future__ import annotations

import numpy as np

from openneutron.litert.graph import DType, Graph, Operator


def widen_halves(graph: Graph) -> int:
    """Replace each DEQUANTIZE of a float16 constant by its result; returns how many went. Graph outputs stay.

    The float16 constants stay in the list of tensors: `drop_tensors` takes away what nothing reads.

    Example:
        >>> widen_halves(model.main)
        74
    """
    outputs = set(graph.outputs)
    kept = [op for op in graph.operators if not _widens(graph, op) or op.outputs[0] in outputs]
    for op in graph.operators:
        if _widens(graph, op) and op.outputs[0] not in outputs:
            half, result = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
            assert half.data is not None
            result.data = half.data.astype(np.float32)
            result.data.flags.writeable = False
    gone = len(graph.operators) - len(kept)
    graph.operators = kept
    return gone


def _widens(graph: Graph, op: Operator) -> bool:
    if op.code != "DEQUANTIZE" or min(op.inputs, default=-1) < 0 or not op.outputs:
        return False
    half, result = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    return half.is_constant and half.dtype is DType.FLOAT16 and result.dtype is DType.FLOAT32
