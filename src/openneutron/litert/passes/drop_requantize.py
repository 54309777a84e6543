"""DropRequantize: an INT8 QUANTIZE to the parameters its input has already copies, so its readers read the input.

Before:  y = QUANTIZE(x), same scale, zero point and type; z = f(y)
After:   z = f(x)
"""

from __future__ import annotations

from openneutron.litert.graph import Graph


def drop_requantize(graph: Graph) -> int:
    """Rewrite in place; returns how many were dropped."""
    replaced: dict[int, int] = {}
    kept = []
    for op in graph.operators:
        op.inputs = [replaced.get(tensor, tensor) for tensor in op.inputs]
        if op.code == "QUANTIZE" and op.outputs[0] not in graph.outputs:
            source, result = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
            if source.dtype == result.dtype and source.quantization == result.quantization:
                replaced[op.outputs[0]] = op.inputs[0]
                continue
        kept.append(op)
    count = len(graph.operators) - len(kept)
    graph.operators[:] = kept
    return count
