"""Correct the biases of a quantized LiteRT model by what rounding its weights adds to each output channel on average.

Example:
    >>> correct_biases(quantized, floating, {"x": np.array([0.5, 1.0])})
    21
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.litert.graph import Model, Tensor
from openneutron.litert.passes.channel_groups import WEIGHTED, flattened_channels

Array = npt.NDArray[Any]


def correct_biases(quantized: Model, floating: Model, means: Mapping[str, Array]) -> int:
    """Change integer biases in place; returns of how many layers. `means` are those of float tensors, by channel and name."""
    own, exact = quantized.main, floating.main
    layers = {exact.tensors[op.outputs[0]].name: op for op in exact.operators if op.code in WEIGHTED}
    count = 0
    for op in own.operators:
        layer = layers.get(own.tensors[op.outputs[0]].name) if op.code in WEIGHTED else None
        if layer is None or layer.code != op.code:
            continue
        at_input, at_weights, at_bias = WEIGHTED[op.code]
        mean = means.get(exact.tensors[layer.inputs[at_input]].name)
        weights, bias = own.tensors[op.inputs[at_weights]], op.inputs[at_bias] if len(op.inputs) > at_bias else -1
        wanted = exact.tensors[layer.inputs[at_weights]].data
        if mean is None or bias < 0 or wanted is None or weights.quantization is None or weights.data is None:
            continue
        shift = _shift(_values(weights) - wanted, mean, depthwise=op.code == "DEPTHWISE_CONV_2D")
        count += _subtract(own.tensors[bias], shift)
    return count


def _values(tensor: Tensor) -> Array:
    """Return the real values of quantized weights."""
    assert tensor.quantization is not None and tensor.data is not None
    how = tensor.quantization
    shape = [1] * len(tensor.shape)
    if how.per_channel:
        shape[how.axis] = len(how.scale)
    scale, zero = (np.asarray(one, np.float64).reshape(shape) for one in (how.scale, how.zero_point))
    values: Array = (tensor.data.astype(np.float64) - zero) * scale
    return values


def _shift(error: Array, mean: Array, *, depthwise: bool) -> Array:
    """Return what an error of the weights adds to each output channel, for the mean of each input channel."""
    if depthwise:
        shift: Array = (error * np.repeat(mean, error.shape[-1] // len(mean))).sum(tuple(range(error.ndim - 1)))
        return shift
    rows = error.reshape(error.shape[0], -1)
    whole: Array = rows @ mean[flattened_channels(rows.shape[1], len(mean))]
    return whole


def _subtract(bias: Tensor, shift: Array) -> bool:
    if bias.data is None or bias.quantization is None or bias.dtype.numpy.kind != "i" or bias.data.size != shift.size:
        return False
    limits = np.iinfo(bias.dtype.numpy)
    moved = bias.data.astype(np.int64) - np.rint(shift / np.asarray(bias.quantization.scale)).astype(np.int64)
    stored = np.clip(moved, limits.min, limits.max).astype(bias.dtype.numpy)
    stored.flags.writeable = False
    bias.data = stored
    return True
