"""PermuteFcWeights: after a flatten, reorder the weights instead of moving the activations.

Before:  y = TRANSPOSE(x, NHWC→NCHW); v = RESHAPE(y, [N, C·H·W]); z = FULLY_CONNECTED(v, w)
After:   v = RESHAPE(x, [N, H·W·C]); z = FULLY_CONNECTED(v, w with its columns reordered)

Weights that several layers share are copied, never changed for another reader.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from openneutron.litert.graph import Graph, Operator
from openneutron.litert.passes.fuse_transposes import permutation_of


def permute_fc_weights(graph: Graph) -> int:
    """Rewrite in place; returns how many flattens lost their transpose."""
    count = 0
    writers = {tensor: op for op in graph.operators for tensor in op.outputs}
    readers: dict[int, list[Operator]] = {}
    for op in graph.operators:
        for tensor in dict.fromkeys(op.inputs):
            readers.setdefault(tensor, []).append(op)
    for reshape in graph.operators:
        if reshape.code != "RESHAPE" or reshape.outputs[0] in graph.outputs:
            continue
        transpose = writers.get(reshape.inputs[0])
        layers = readers.get(reshape.outputs[0], [])
        if transpose is None or not layers or not all(_takes(graph, layer, reshape.outputs[0]) for layer in layers):
            continue
        permutation = permutation_of(graph, transpose)
        source = graph.tensors[transpose.inputs[0]]
        flat = graph.tensors[reshape.outputs[0]].shape
        if permutation is None or permutation[0] != 0 or len(flat) != 2 or flat[0] != source.shape[0]:
            continue
        for layer in layers:
            _reorder(graph, layer, permutation, source.shape)
        reshape.inputs[0] = transpose.inputs[0]
        count += 1
    return count


def _takes(graph: Graph, op: Operator, tensor: int) -> bool:
    return (
        op.code == "FULLY_CONNECTED" and op.inputs[0] == tensor and tensor not in op.inputs[1:]
        and graph.tensors[op.inputs[1]].data is not None
    )  # fmt: skip


def _reorder(graph: Graph, layer: Operator, permutation: list[int], shape: tuple[int, ...]) -> None:
    weights = graph.tensors[layer.inputs[1]]
    assert weights.data is not None
    outputs = weights.shape[0]
    seen = [shape[axis] for axis in permutation]
    inverse = np.argsort(permutation)
    columns = weights.data.reshape(outputs, *seen[1:]).transpose(inverse)
    data = np.ascontiguousarray(columns.reshape(weights.shape))
    graph.tensors.append(replace(weights, name=f"{weights.name}_nhwc", data=data))
    layer.inputs[1] = len(graph.tensors) - 1
