"""Weights that a file keeps as integers for layers that compute in float, as the float32 constants they stand for.

Before:  y = CONV_2D(x, w)         x, y: float32; w: int8 with scales ("dynamic range" quantization)
After:   y = CONV_2D(x, w)         w: float32
"""

from __future__ import annotations

import numpy as np

from openneutron.litert.graph import DType, Graph, Tensor

_INTEGERS = (DType.INT8, DType.UINT8, DType.INT4, DType.INT2)


def widen_integers(graph: Graph) -> int:
    """Replace quantized constants that only operators with float results read; returns how many.

    Example:
        >>> widen_integers(model.main)
        9
    """
    readers = graph.consumers()
    count = 0
    for at, tensor in enumerate(graph.tensors):
        if not is_stored_weight(tensor) or at in graph.outputs:
            continue
        results = [one for index in readers.get(at, ()) for one in graph.operators[index].outputs]
        if results and all(graph.tensors[one].dtype is DType.FLOAT32 for one in results):
            _widen(tensor)
            count += 1
    kept = [
        op
        for op in graph.operators
        if op.code != "DEQUANTIZE" or graph.tensors[op.inputs[0]].dtype is not DType.FLOAT32
    ]
    for op in graph.operators:
        if op not in kept:
            graph.tensors[op.outputs[0]].data = graph.tensors[op.inputs[0]].data
    graph.operators = kept
    return count


def is_stored_weight(tensor: Tensor) -> bool:
    """Return whether a tensor is a quantized constant."""
    return tensor.is_constant and tensor.quantization is not None and tensor.dtype in _INTEGERS


def _widen(tensor: Tensor) -> None:
    assert tensor.quantization is not None and tensor.data is not None
    scale, zero = (np.array(one, np.float64) for one in (tensor.quantization.scale, tensor.quantization.zero_point))
    if tensor.quantization.per_channel:
        shape = [1] * len(tensor.shape)
        shape[tensor.quantization.axis] = -1
        scale, zero = scale.reshape(shape), zero.reshape(shape)
    tensor.data = ((tensor.data.astype(np.float64) - zero) * scale).astype(np.float32)
    tensor.data.flags.writeable = False
    tensor.dtype, tensor.quantization, tensor.sparsity, tensor.quantization_details = DType.FLOAT32, None, None, None
