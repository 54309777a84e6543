"""Constants computed while compiling: shape arithmetic that converters leave for a batch of any size, and moves of data.

Before:  s = SHAPE(x); n = STRIDED_SLICE(s); t = PACK(n, 128); y = RESHAPE(x, t)
After:   y = RESHAPE(x, [1, 128])
"""

from __future__ import annotations

import numpy as np

from openneutron.litert.graph import Array, Graph, Operator
from openneutron.litert.passes.constant_values import LARGEST, evaluate
from openneutron.litert.passes.resolve_shape import resolve_shape

# A file of many small operators must not become a large one.
ALL_TOGETHER = 16 * LARGEST


def fold_constants(graph: Graph) -> set[int]:
    """Give the outputs of such operators their values; returns the indices of the operators, which stay in the list.

    Sizes that the file leaves open count as it states them, one in all converters' files, unless they follow from the
    inputs; the tensors' shapes are then corrected. Graph outputs are not folded: somebody must still compute them.

    Example:
        >>> folded = fold_constants(model.main)
    """
    folded: set[int] = set()
    kept = set(graph.outputs)
    left = ALL_TOGETHER
    for index, op in enumerate(graph.operators):
        resolve_shape(graph, op)
        values = values_of(graph, op) if op.outputs and not kept.intersection(op.outputs) else None
        left -= sum(value.size for value in values or ())
        if values is None or left < 0:
            continue
        for tensor, value in zip(op.outputs, values, strict=True):
            graph.tensors[tensor].data = value
        folded.add(index)
    return folded


def compute_constants(graph: Graph) -> int:
    """Fold constants and take the operators away that computed them; returns how many.

    Example:
        >>> compute_constants(model.main)
        40
    """
    folded = fold_constants(graph)
    graph.operators = [op for index, op in enumerate(graph.operators) if index not in folded]
    return len(folded)


def values_of(graph: Graph, op: Operator) -> list[Array] | None:
    """Return an operator's values if all inputs are constants and it can be folded, else None."""
    if op.code == "SHAPE" and len(op.inputs) == len(op.outputs) == 1 and op.inputs[0] >= 0:
        return _shape(graph, op)
    if min(op.inputs, default=-1) < 0:
        return None
    data = [graph.tensors[t].data for t in op.inputs]
    known = [one for one in data if one is not None]
    if len(known) < len(data):
        return None
    made = sum(graph.tensors[t].elements for t in op.outputs)
    return evaluate(graph, op, known) if made <= max(LARGEST, *(one.size for one in known)) else None


def _shape(graph: Graph, op: Operator) -> list[Array] | None:
    x, y = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    if x.dtype.is_opaque or y.dtype.numpy.kind != "i" or y.shape != (len(x.shape),):
        return None
    made = np.array(x.shape, y.dtype.numpy)
    made.flags.writeable = False
    return [made]
