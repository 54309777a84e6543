"""Softmax and related operators: before opset 13 over all dimensions from an axis on."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import torch

from openneutron.onnx.ops import converts

if TYPE_CHECKING:
    from openneutron.onnx.call import Call


def _over(call: Call, function: Callable[..., Any]) -> torch.Tensor:
    x = call.tensor(0)
    if call.version >= 13:
        return function(x, int(call.attribute("axis", -1)))
    axis = int(call.attribute("axis", 1)) % max(x.dim(), 1)
    if prod(x.shape[axis + 1 :]) == 1:  # one dimension is left: no need to flatten
        return function(x, axis)
    if axis == x.dim():
        return function(x.unsqueeze(-1), -1).squeeze(-1)
    flat = x.reshape(prod(x.shape[:axis]), -1)
    return function(flat, 1).reshape(x.shape)


@converts("Softmax")
def softmax(call: Call) -> torch.Tensor:
    """Normalize exponentials to a sum of 1."""
    return _over(call, torch.softmax)


@converts("LogSoftmax")
def log_softmax(call: Call) -> torch.Tensor:
    """Return the logarithm of softmax."""
    return _over(call, torch.log_softmax)


@converts("Hardmax")
def hardmax(call: Call) -> torch.Tensor:
    """Return 1 at the first maximum, 0 elsewhere."""

    def function(x: torch.Tensor, axis: int) -> torch.Tensor:
        largest = torch.argmax(x, axis, keepdim=True)
        places = torch.arange(x.shape[axis]).reshape([-1 if at == axis % x.dim() else 1 for at in range(x.dim())])
        return (places == largest).to(x.dtype)

    return _over(call, function)
