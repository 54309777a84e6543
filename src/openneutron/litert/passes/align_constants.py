"""Constants of operators that want one scale for all operands, with as many dimensions as the result.

Before:  MAXIMUM(x [1, 8, 8, 3], 0.5 [])
After:   MAXIMUM(x [1, 8, 8, 3], 0.5 [1, 1, 1, 1])

LiteRT's quantizer gives such a constant the scale of the result, and fails where the number of dimensions differs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from openneutron.litert.graph import DType, Graph

_ONE_SCALE: Final = frozenset({"MAXIMUM", "MINIMUM", "SELECT_V2"})


def align_constants(graph: Graph) -> int:
    """Rewrite the graph in place; returns how many constants changed.

    Example:
        >>> align_constants(model.main)
        1
    """
    count = 0
    for op in graph.operators:
        if op.code not in _ONE_SCALE or not op.outputs:
            continue
        dims = len(graph.tensors[op.outputs[0]].shape)
        for place, at in enumerate(op.inputs):
            tensor = graph.tensors[at]
            if tensor.data is None or tensor.dtype is not DType.FLOAT32 or len(tensor.shape) >= dims:
                continue
            shape = (1,) * (dims - len(tensor.shape)) + tensor.shape
            graph.tensors.append(replace(tensor, shape=shape, data=tensor.data.reshape(shape), shape_signature=None))
            op.inputs[place] = len(graph.tensors) - 1
            count += 1
    return count
