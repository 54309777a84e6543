"""FuseTransposes: a transpose of a transpose becomes one, or none when they cancel.

Before:  y = TRANSPOSE(x, p); z = TRANSPOSE(y, q); w = f(z)
After:   z = TRANSPOSE(x, p∘q); w = f(z), or w = f(x) when p∘q moves nothing
"""

from __future__ import annotations

import numpy as np

from openneutron.litert.graph import Graph, Operator, Tensor


def fuse_transposes(graph: Graph) -> int:
    """Rewrite in place; returns how many transposes were fused or removed."""
    count = 0
    writers = {tensor: op for op in graph.operators for tensor in op.outputs}
    replaced: dict[int, int] = {}
    for op in list(graph.operators):
        op.inputs = [replaced.get(tensor, tensor) for tensor in op.inputs]
        permutation = permutation_of(graph, op)
        before = writers.get(op.inputs[0]) if permutation is not None else None
        first = permutation_of(graph, before) if before is not None else None
        if permutation is None or before is None or first is None:
            continue
        both = [first[axis] for axis in permutation]
        source = before.inputs[0]
        count += 1
        if both == sorted(both) and op.outputs[0] not in graph.outputs:
            replaced[op.outputs[0]] = source
            graph.operators.remove(op)
        else:
            name = f"{graph.tensors[op.inputs[1]].name}_fused"
            graph.tensors.append(constant_like(graph.tensors[op.inputs[1]], name, both))
            op.inputs = [source, len(graph.tensors) - 1]
    return count


def permutation_of(graph: Graph, op: Operator) -> list[int] | None:
    """The constant permutation of a TRANSPOSE, None for any other operator."""
    if op.code != "TRANSPOSE":
        return None
    data = graph.tensors[op.inputs[1]].data
    return None if data is None else [int(axis) for axis in data.reshape(-1)]


def constant_like(tensor: Tensor, name: str, values: list[int]) -> Tensor:
    """A constant of the same type with other values."""
    data = np.asarray(values, tensor.dtype.numpy)
    return Tensor(name, data.shape, tensor.dtype, data=data)
