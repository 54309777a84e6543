"""Weights with a scale for each block of inputs, as INT8 weights with a scale for each output channel.

Before:  y = FULLY_CONNECTED(x, w: INT4 with scales [outputs, blocks], b)
After:   y = FULLY_CONNECTED(x, w: INT8 = quotients · factor of the block, scale per output, b in their scale)

LiteRT has no integer kernel for such blocks; docs/numerics.md, 4-bit weights, says how factors are rounded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from openneutron.litert.graph import DType, Graph, Operator, Quantization, Tensor
from openneutron.litert.grouped_weights import join_groups

_ACTIVATIONS = (DType.INT8, DType.INT16)
_BIASES = (DType.INT32, DType.INT64)


def join_blocks(graph: Graph) -> int:
    """Rewrite the weights of every FULLY_CONNECTED with integer activations; returns how many layers changed.

    Example:
        >>> join_blocks(model.main)
        7
    """
    return sum(_join(graph, op) for op in graph.operators if op.code == "FULLY_CONNECTED" and len(op.inputs) > 1)


def _join(graph: Graph, op: Operator) -> bool:
    x, w = (graph.tensors[index] for index in op.inputs[:2])
    details = w.quantization_details
    if type(details).__name__ != "BlockwiseQuantizationT" or w.dtype not in (DType.INT4, DType.INT2) or w.data is None:
        return False
    if x.dtype not in _ACTIVATIONS or x.quantization is None or len(x.quantization.scale) != 1 or len(w.shape) != 2:
        return False
    block = int(details.blockSize)
    scales = _constant(graph, details.scales)
    if scales is None or block < 1 or scales.size * block != w.elements or scales.size % w.shape[0]:
        return False
    zeros = _constant(graph, details.zeroPoints) if details.zeroPoints not in (0, details.scales) else None
    if zeros is not None and (zeros.size != scales.size or zeros.any()):
        return False
    values, channel_scales = join_groups(np.asarray(w.data), scales.astype(np.float32).reshape(w.shape[0], -1), block)
    bias = graph.tensors[op.inputs[2]] if len(op.inputs) > 2 and op.inputs[2] >= 0 else None
    in_scale = np.float32(x.quantization.scale[0])
    made = None if bias is None else _bias(bias, in_scale * channel_scales)
    if bias is not None and made is None:
        return False
    weights = Tensor(
        f"{w.name}/joined",
        w.shape,
        DType.INT8,
        Quantization(tuple(map(float, channel_scales)), (0,) * w.shape[0], 0),
        values,
    )
    op.inputs = [op.inputs[0], _add(graph, weights), *([] if made is None else [_add(graph, made)]), *op.inputs[3:]]
    return True


def _constant(graph: Graph, index: int) -> Any:
    """Return a constant's data, None where the number names none."""
    return graph.tensors[index].data if 0 <= index < len(graph.tensors) else None


def _bias(bias: Tensor, scales: Any) -> Tensor | None:
    """Return a bias in other scales; None where it has none that can be changed."""
    if bias.data is None or bias.quantization is None or bias.dtype not in _BIASES:
        return None
    real = np.asarray(bias.data, np.float64) * np.asarray(bias.quantization.scale, np.float64)
    limits = np.iinfo(bias.dtype.numpy)
    values = np.clip(np.rint(real / scales.astype(np.float64)), limits.min, limits.max).astype(bias.dtype.numpy)
    quantization = Quantization(tuple(map(float, scales)), (0,) * len(scales), 0)
    return Tensor(f"{bias.name}/joined", bias.shape, bias.dtype, quantization, values)


def _add(graph: Graph, tensor: Tensor) -> int:
    graph.tensors.append(tensor)
    return len(graph.tensors) - 1
