"""Normalization operators."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from openneutron.onnx.ops import converts
from openneutron.onnx.ops._types import to

if TYPE_CHECKING:
    from openneutron.onnx.call import Call


@converts("BatchNormalization")
def batch_norm(call: Call) -> torch.Tensor | tuple[torch.Tensor, ...]:
    """Normalize with stored statistics; the training form updates them."""
    x, scale, bias, mean, variance = call.tensors()[:5]
    epsilon = float(call.attribute("epsilon", 1e-5))
    if not call.attribute("training_mode", 0):
        return functional.batch_norm(x, mean, variance, scale, bias, False, 0.0, epsilon)
    momentum = float(call.attribute("momentum", 0.9))
    axes = [0, *range(2, x.dim())]
    new_mean, new_variance = x.mean(axes), x.var(axes, correction=0)
    y = functional.batch_norm(x, new_mean, new_variance, scale, bias, False, 0.0, epsilon)
    return y, mean * momentum + new_mean * (1 - momentum), variance * momentum + new_variance * (1 - momentum)


@converts("InstanceNormalization")
def instance_norm(call: Call) -> torch.Tensor:
    """Normalize each channel of each sample."""
    x, scale, bias = call.tensors()
    epsilon = float(call.attribute("epsilon", 1e-5))
    return functional.group_norm(x, x.shape[1], scale, bias, epsilon)


@converts("GroupNormalization")
def group_norm(call: Call) -> torch.Tensor:
    """Normalize groups of channels; before opset 21 there was one scale per group."""
    x, scale, bias = call.tensors()
    groups = int(call.attribute("num_groups", 1))
    if scale.shape[0] == groups and groups != x.shape[1]:
        repeat = x.shape[1] // groups
        scale, bias = scale.repeat_interleave(repeat), bias.repeat_interleave(repeat)
    return functional.group_norm(x, groups, scale, bias, float(call.attribute("epsilon", 1e-5)))


def _flat(x: torch.Tensor, axis: int) -> tuple[int, list[int]]:
    first = axis % x.dim()
    return first, list(range(first, x.dim()))


@converts("LayerNormalization")
def layer_norm(call: Call) -> tuple[torch.Tensor, ...]:
    """Normalize over the last dimensions; the mean and the inverse deviation are results too where they are read."""
    x, scale, bias = call.tensor(0), call.tensor(1), call.optional(2)
    epsilon = float(call.attribute("epsilon", 1e-5))
    first, axes = _flat(x, int(call.attribute("axis", -1)))
    shape = x.shape[first:]
    if scale.shape == shape and (bias is None or bias.shape == shape):
        y = functional.layer_norm(x, shape, scale, bias, epsilon)
    else:
        y = functional.layer_norm(x, shape, None, None, epsilon) * scale
        y = y if bias is None else y + bias
    if len([name for name in call.node.output if name]) < 2:
        return (y,)
    mean = x.mean(axes, True)
    return y, mean, torch.rsqrt(((x - mean) * (x - mean)).mean(axes, True) + epsilon)


@converts("RMSNormalization")
def rms_norm(call: Call) -> torch.Tensor:
    """Normalize over the last dimensions by the root of the mean square."""
    x, scale = call.tensor(0), call.tensor(1)
    _, axes = _flat(x, int(call.attribute("axis", -1)))
    wide = to(x, torch.float32) if call.attribute("stash_type", 1) == 1 else x
    root = torch.rsqrt((wide * wide).mean(axes, True) + float(call.attribute("epsilon", 1e-5)))
    return to(wide * root, x.dtype) * scale


@converts("MeanVarianceNormalization")
def mean_variance(call: Call) -> torch.Tensor:
    """Normalize to mean 0 and standard deviation 1."""
    x = call.tensor(0)
    axes = [int(one) for one in call.attribute("axes") or [0, 2, 3]]
    apart = x - x.mean(axes, True)
    return apart / ((apart * apart).mean(axes, True).sqrt() + 1e-9)


@converts("LRN")
def local_response(call: Call) -> torch.Tensor:
    """Divide by a function of the squares of neighbouring channels."""
    x, size = call.tensor(0), int(call.attribute("size", 1))
    alpha, beta = float(call.attribute("alpha", 1e-4)), float(call.attribute("beta", 0.75))
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    squares = (x * x).reshape(x.shape[0], 1, x.shape[1], prod(x.shape[2:]), 1)
    around = functional.pad(squares, [0, 0, 0, 0, before, after])
    mean = functional.avg_pool3d(around, (size, 1, 1), stride=1).reshape(x.shape)
    return x / (float(call.attribute("bias", 1.0)) + alpha * mean) ** beta


@converts("LpNormalization")
def lp_norm(call: Call) -> torch.Tensor:
    """Normalize to length 1; vectors of length 0 stay 0."""
    x, axis, p = call.tensor(0), int(call.attribute("axis", -1)), int(call.attribute("p", 2))
    length = x.abs().sum(axis, True) if p == 1 else (x * x).sum(axis, True).sqrt()
    return torch.where(length == 0, torch.zeros_like(x), x / length)
