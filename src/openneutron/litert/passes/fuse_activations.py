"""Clamping operators as part of the operator before them.

Before:  y = ADD(a, b); z = RELU(y)
After:   z = ADD(a, b) with RELU

The result is the same. Quantized, what the clamp takes away needs no part of a scale, and there is a step less.
"""

from __future__ import annotations

import copy
from typing import Final

from openneutron.litert.codes import FUSED_ACTIVATIONS
from openneutron.litert.graph import DType, Graph, Operator
from openneutron.litert.operator_options import make_options

# Those whose quantized kernels clamp; others of the schema have the field and ignore it.
_FUSING: Final = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "ADD", "SUB", "MUL"})


def fuse_activations(graph: Graph) -> int:
    """Fuse the clamps of a float graph that are all that reads their input; returns how many.

    Example:
        >>> fuse_activations(model.main)
        17
    """
    producers, readers = graph.producers(), graph.consumers()
    outputs = set(graph.outputs)
    gone: set[int] = set()
    for at, op in enumerate(graph.operators):
        if op.code not in FUSED_ACTIVATIONS or op.inputs[0] in outputs:
            continue
        (given,), (result,) = op.inputs, op.outputs
        before = graph.operators[producers[given]] if given in producers else None
        if before is None or not _can_fuse(graph, before) or readers[given] != [at]:
            continue
        before.options = copy.copy(before.options) or make_options(before.code, {})
        before.options.fusedActivationFunction = FUSED_ACTIVATIONS.index(op.code)
        before.outputs = [result]
        producers[result] = producers[given]
        gone.add(at)
    graph.operators = [op for at, op in enumerate(graph.operators) if at not in gone]
    return len(gone)


def _can_fuse(graph: Graph, op: Operator) -> bool:
    plain = op.options is None or not op.options.fusedActivationFunction
    return op.code in _FUSING and plain and graph.tensors[op.outputs[0]].dtype is DType.FLOAT32
