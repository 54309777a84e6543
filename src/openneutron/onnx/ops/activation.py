"""Activation functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from openneutron.onnx.ops import converts

if TYPE_CHECKING:
    from openneutron.onnx.call import Call

_PLAIN: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "Relu": torch.relu, "Sigmoid": torch.sigmoid, "Tanh": torch.tanh, "Softplus": functional.softplus,
    "Softsign": functional.softsign, "HardSwish": functional.hardswish, "Mish": functional.mish,
}  # fmt: skip


def _plain(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Call], torch.Tensor]:
    return lambda call: function(call.tensor(0))


for _name, _function in _PLAIN.items():
    converts(_name)(_plain(_function))


@converts("LeakyRelu")
def leaky_relu(call: Call) -> torch.Tensor:
    """Multiply negative values by a slope."""
    return functional.leaky_relu(call.tensor(0), float(call.attribute("alpha", 0.01)))


@converts("PRelu")
def prelu(call: Call) -> torch.Tensor:
    """Multiply negative values by a slope per channel, or by slopes of any shape that broadcasts."""
    x, slope = call.tensor(0), call.tensor(1)
    per_channel = slope.dim() in (0, x.dim() - 1) or (slope.dim() == x.dim() and slope.shape[0] == 1)
    channels = x.shape[1] if x.dim() > 1 else 1
    others = slope.numel() == 1 or (slope.numel() == channels and slope.shape[:1] in ((channels,), (1,)))
    if x.dim() > 1 and x.is_floating_point() and per_channel and others and _along_channels(slope, x):
        data = call.value(1).data
        return functional.prelu(x, slope.reshape(-1) if data is None else call.constant(lambda: data.reshape(-1)))
    return torch.where(x < 0, x * slope, x)


def _along_channels(slope: torch.Tensor, x: torch.Tensor) -> bool:
    """Return whether a slope varies only along dimension 1."""
    if slope.numel() == 1:
        return True
    shape = (1,) * (x.dim() - slope.dim()) + tuple(slope.shape)
    return shape[1] == x.shape[1] == slope.numel()


@converts("Elu")
def elu(call: Call) -> torch.Tensor:
    """Apply an exponential below zero."""
    return functional.elu(call.tensor(0), float(call.attribute("alpha", 1.0)))


@converts("Celu")
def celu(call: Call) -> torch.Tensor:
    """Apply an exponential below zero that is smooth for any alpha."""
    return functional.celu(call.tensor(0), float(call.attribute("alpha", 1.0)))


@converts("Selu")
def selu(call: Call) -> torch.Tensor:
    """Apply a scaled exponential below zero."""
    alpha = float(call.attribute("alpha", 1.6732632423543772))
    gamma = float(call.attribute("gamma", 1.0507009873554805))
    return functional.elu(call.tensor(0), alpha) * gamma


@converts("ThresholdedRelu")
def thresholded_relu(call: Call) -> torch.Tensor:
    """Set values up to a threshold to zero."""
    return functional.threshold(call.tensor(0), float(call.attribute("alpha", 1.0)), 0.0)


@converts("HardSigmoid")
def hard_sigmoid(call: Call) -> torch.Tensor:
    """Apply a straight line, clipped to 0 and 1."""
    x, alpha, beta = call.tensor(0), float(call.attribute("alpha", 0.2)), float(call.attribute("beta", 0.5))
    if abs(alpha - 1 / 6) < 1e-6 and beta == 0.5:
        return functional.hardsigmoid(x)
    return torch.clamp(x * alpha + beta, 0.0, 1.0)


@converts("Gelu")
def gelu(call: Call) -> torch.Tensor:
    """Apply the exact GELU, or its tanh approximation."""
    return functional.gelu(call.tensor(0), approximate=call.text("approximate", "none", ("none", "tanh")))


@converts("Swish")
def swish(call: Call) -> torch.Tensor:
    """Multiply the input by its sigmoid."""
    x, alpha = call.tensor(0), float(call.attribute("alpha", 1.0))
    return functional.silu(x) if alpha == 1.0 else x * torch.sigmoid(x * alpha)


@converts("Shrink")
def shrink(call: Call) -> torch.Tensor:
    """Move values toward zero, and set small ones to zero."""
    x, bias, edge = call.tensor(0), call.attribute("bias", 0.0), call.attribute("lambd", 0.5)
    bias = bias if x.is_floating_point() else int(bias)
    zero = torch.zeros_like(x)
    return torch.where(x < -edge, x + bias, torch.where(x > edge, x - bias, zero))


@converts("Clip")
def clip(call: Call) -> torch.Tensor:
    """Clip between two bounds, either of which may be missing."""
    x = call.tensor(0)
    if call.version < 11:
        low, high = call.attribute("min"), call.attribute("max")
        return torch.clamp(x, low, high) if low is not None or high is not None else x
    bounds = [call.scalar(index) if call.has(index) else None for index in (1, 2)]
    computed = [call.has(index) and bounds[index - 1] is None for index in (1, 2)]
    if any(computed):
        y = torch.maximum(x, call.tensor(1)) if call.has(1) else x
        return torch.minimum(y, call.tensor(2)) if call.has(2) else y
    low, high = (None if bound is None or _is_extreme(x, bound) else bound for bound in bounds)
    if low is None and high is None:
        return x
    if low is not None and high is not None and low > high:  # ONNX: the upper bound wins
        low = high
    if low == 0 and high is None and x.is_floating_point():
        return torch.relu(x)
    if x.dtype in (torch.uint8, torch.int8, torch.int16):
        return torch.clamp(x.to(torch.int32), low, high).to(x.dtype)
    return torch.clamp(x, low, high)


def _is_extreme(x: torch.Tensor, bound: float | int) -> bool:
    """Return whether a bound is the limit of the type itself, which exporters write for a missing bound."""
    limits = torch.finfo(x.dtype) if x.is_floating_point() else torch.iinfo(x.dtype)
    return bound in (limits.min, limits.max) and x.is_floating_point()
