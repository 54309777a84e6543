"""Give output channels with tiny weights a coarser scale, so that their biases fit into the integers that hold them.

A bias is stored in steps of input scale times weight scale. Of a channel whose weights are nearly 0, as training with decay
leaves them, these steps are so small that the bias wraps around in LiteRT's quantizer, mostly with 16-bit activations.

Example:
    >>> restore_biases(quantized, floating)
    2
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from openneutron.litert.graph import Model, Tensor
from openneutron.litert.passes.channel_groups import WEIGHTED

Array = npt.NDArray[Any]

_LARGEST: Final = 1 << 30  # a bias in its steps: half of INT32, for products that are added


def restore_biases(quantized: Model, floating: Model) -> int:
    """Change scales, weights and biases in place; returns of how many channels."""
    own, exact = quantized.main, floating.main
    layers = {exact.tensors[op.outputs[0]].name: op for op in exact.operators if op.code in WEIGHTED}
    count = 0
    for op in own.operators:
        layer = layers.get(own.tensors[op.outputs[0]].name)
        if layer is None or layer.code != op.code:
            continue
        at_input, at_weights, at_bias = WEIGHTED[op.code]
        if len(op.inputs) <= at_bias or op.inputs[at_bias] < 0:
            continue
        given, weights, bias = (own.tensors[op.inputs[at]] for at in (at_input, at_weights, at_bias))
        values = [exact.tensors[layer.inputs[at]].data for at in (at_weights, at_bias)]
        if given.quantization is not None and all(one is not None for one in values):
            count += _restore(given.quantization.scalar[0], weights, bias, *values)  # type: ignore[arg-type]
    return count


def _restore(scale: float, weights: Tensor, bias: Tensor, wanted: Array, exact_bias: Array) -> int:
    if weights.quantization is None or bias.quantization is None or weights.data is None or bias.data is None:
        return 0
    scales = np.array(weights.quantization.scale, np.float64)
    if len(scales) != exact_bias.size or bias.data.size != exact_bias.size:
        return 0
    least = np.abs(exact_bias.astype(np.float64)) / (scale * _LARGEST)
    (low,) = np.nonzero(scales < least)
    if not len(low):
        return 0
    scales[low] = np.float32(least[low])
    shape = [1] * weights.data.ndim
    shape[weights.quantization.axis] = len(scales)
    stored = np.rint(wanted / scales.reshape(shape)).clip(-127, 127).astype(np.int8)
    kept = weights.data.copy()
    at = tuple(low if axis == weights.quantization.axis else slice(None) for axis in range(kept.ndim))
    kept[at] = stored[at]
    steps: Array = (scale * scales).astype(np.float32)
    moved = bias.data.copy()
    moved[low] = np.rint(exact_bias[low] / steps[low].astype(np.float64)).astype(moved.dtype)
    _set(weights, scales, kept)
    _set(bias, np.where(np.isin(np.arange(len(scales)), low), steps, bias.quantization.scale), moved)
    return len(low)


def _set(tensor: Tensor, scales: Array, data: Array) -> None:
    assert tensor.quantization is not None
    tensor.quantization = replace(tensor.quantization, scale=tuple(float(np.float32(one)) for one in scales))
    data.flags.writeable = False
    tensor.data = data
