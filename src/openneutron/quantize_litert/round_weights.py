"""Round the weights of a quantized LiteRT model so that the results of its layers stay near float's on samples.

Rounding to nearest makes each weight as exact as can be. What counts is their sum with inputs that look alike: neighbouring
pixels, channels that rise together. So one weight after the other moves to the step that makes the error of the sum least,
with all others as they are; a few rounds over the weights of a layer settle it. This reduces the error that AdaRound and
GPTQ reduce, in less time than the first and below the second, which visits each weight once. Biases take what an error adds
on average.

Example:
    >>> round_weights(quantized, floating, moments.of({}))
    21
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from openneutron.litert.graph import Model, Tensor
from openneutron.litert.passes.channel_groups import WEIGHTED
from openneutron.quantize_litert.layer_moments import Moments

Array = npt.NDArray[Any]

_ROUNDS: Final = 4  # over the weights of a layer; more changed nothing that outputs show
_BLOCK: Final = 64  # inputs whose effect on all others is added up at once: one product of matrices
_LIMIT: Final = 127  # of stored weights, on both sides


def round_weights(quantized: Model, floating: Model, moments: Mapping[str, Moments]) -> int:
    """Change integer weights and biases in place; returns of how many layers. `moments` are by the name of a layer's output."""
    own, exact = quantized.main, floating.main
    layers = {exact.tensors[op.outputs[0]].name: op for op in exact.operators if op.code in WEIGHTED}
    count = 0
    for op in own.operators:
        name = own.tensors[op.outputs[0]].name
        layer = layers.get(name)
        if layer is None or layer.code != op.code or name not in moments:
            continue
        _, at_weights, at_bias = WEIGHTED[op.code]
        weights, wanted = own.tensors[op.inputs[at_weights]], exact.tensors[layer.inputs[at_weights]].data
        if wanted is None or weights.data is None or weights.data.dtype != np.int8 or weights.quantization is None:
            continue
        has_bias = len(op.inputs) > at_bias and op.inputs[at_bias] >= 0
        error = _round_layer(weights, wanted, moments[name], depthwise=op.code == "DEPTHWISE_CONV_2D")
        if has_bias:
            _subtract(own.tensors[op.inputs[at_bias]], error)
        count += 1
    return count


def round_rows(wanted: Array, covariance: Array) -> Array:
    """Return integers near `wanted` whose error, multiplied with inputs of this covariance, is small; in each row.

    `covariance` is one for all rows, or one for each.

    Example:
        >>> round_rows(np.array([[0.4, 0.4]]), np.array([[1.0, 0.99], [0.99, 1.0]]))
        array([[1., 0.]])
    """
    stored = np.clip(np.rint(wanted), -_LIMIT, _LIMIT)
    diagonal = np.einsum("...ii->...i", covariance)
    gradient = _times(stored - wanted, covariance)
    for _ in range(_ROUNDS):
        before = stored.copy()
        for first in range(0, wanted.shape[1], _BLOCK):
            here = slice(first, first + _BLOCK)
            within, local = covariance[..., here, here], gradient[:, here].copy()
            start = stored[:, here].copy()
            for at in range(local.shape[1]):
                best = stored[:, first + at] - local[:, at] / diagonal[..., first + at]
                moved = np.clip(np.rint(best), -_LIMIT, _LIMIT)
                local += (moved - stored[:, first + at])[:, None] * within[..., at, :]
                stored[:, first + at] = moved
            gradient += _times(stored[:, here] - start, covariance[..., here, :])
        if (stored == before).all():
            break
    return stored


def _round_layer(weights: Tensor, wanted: Array, moments: Moments, *, depthwise: bool) -> Array:
    """Round the weights of a layer; returns what their error adds to each output channel on average."""
    assert weights.quantization is not None and weights.data is not None
    scale = np.asarray(weights.quantization.scale, np.float64)

    def to_rows(data: Array) -> Array:
        flat = data.astype(np.float64).reshape(-1, data.shape[-1]).T if depthwise else data.reshape(data.shape[0], -1)
        return flat.astype(np.float64)

    rows = to_rows(wanted)
    steps = np.broadcast_to(scale, len(rows))[:, None]
    multiplier = len(rows) // len(moments.sums) if depthwise else 1
    mean = np.repeat(moments.mean, multiplier, axis=0) if depthwise else moments.mean
    if moments.products is None:
        stored = to_rows(weights.data)
    else:
        covariance = moments.covariance
        stored = round_rows(rows / steps, np.repeat(covariance, multiplier, axis=0) if depthwise else covariance)
        shaped = (stored.T if depthwise else stored).reshape(weights.data.shape).astype(np.int8)
        shaped.flags.writeable = False
        weights.data = shaped
    error: Array = ((stored * steps - rows) * mean).sum(1)
    return error


def _times(rows: Array, covariance: Array) -> Array:
    """Return each row times the matrix, or times the matrix of its own."""
    found: Array = rows @ covariance if covariance.ndim == 2 else np.einsum("ri,rij->rj", rows, covariance)
    return found


def _subtract(bias: Tensor, shift: Array) -> None:
    """Subtract real values from an integer bias."""
    if bias.data is None or bias.quantization is None or bias.dtype.numpy.kind != "i" or bias.data.size != shift.size:
        return
    limits = np.iinfo(bias.dtype.numpy)
    moved = bias.data.astype(np.float64) - shift / np.asarray(bias.quantization.scale)
    stored = np.clip(np.rint(moved), limits.min, limits.max).astype(bias.dtype.numpy)
    stored.flags.writeable = False
    bias.data = stored
