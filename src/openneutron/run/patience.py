"""Compute the time limit of a model's run in LiteRT.

A minute, and for large models the time that the slowest kernels on a slow machine need for their multiplications. What the
file itself says is only believed up to ten minutes.
"""

from __future__ import annotations

import math

from openneutron import environment
from openneutron.litert.graph import Graph, Model, Operator

DEFAULT_SECONDS = 60
_MOST_SECONDS = 600
# Reference kernels make some 10^8 multiplications a second; a tenth of that for loaded and old machines.
_MULTIPLICATIONS_A_SECOND = 10_000_000
_MULTIPLYING = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV", "BATCH_MATMUL")


def patience(model: Model) -> int:
    """Return the time limit of one run in seconds; OPENNEUTRON_TIMEOUT overrides it, 0 is unlimited.

    Example:
        >>> patience(read_model(data))
        60
    """
    work = sum(_multiplications(graph, op) for graph in model.graphs for op in graph.operators)
    return environment.timeout(min(DEFAULT_SECONDS + work // _MULTIPLICATIONS_A_SECOND, _MOST_SECONDS))


def _multiplications(graph: Graph, op: Operator) -> int:
    """Return an upper bound of an operator's multiplications: each output element reads a slice of the weights."""
    if op.code not in _MULTIPLYING or len(op.inputs) < 2 or op.inputs[1] < 0 or not op.outputs:
        return 0
    weights, output = graph.tensors[op.inputs[1]].shape, graph.tensors[op.outputs[0]].shape
    return math.prod(output) * math.prod(weights) // max(output[-1] if output else 1, 1)
