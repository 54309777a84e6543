"""Quantize and dequantize with a model's own scales, as nodes that the partitioner recognises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from openneutron.errors import FormatError
from openneutron.executorch.upstream.names import load_quantized_operators
from openneutron.onnx.ops._types import to
from openneutron.onnx.values import Stored

if TYPE_CHECKING:
    from openneutron.onnx.call import Call

load_quantized_operators()
_QD = torch.ops.quantized_decomposed
# The type that stores each unsigned type, and the offset between them.
HELD = {torch.uint8: (torch.int8, 128), torch.uint16: (torch.int16, 32768)}
_LIMITS = {"INT4": (-8, 7), "UINT4": (0, 15), "INT2": (-2, 1), "UINT2": (0, 3)}


def limits(dtype: torch.dtype, kind: str = "") -> tuple[int, int]:
    """Return the smallest and the largest number of a type; `kind` names a type that is stored in a larger one."""
    if kind in _LIMITS:
        return _LIMITS[kind]
    info = torch.iinfo(dtype)
    return int(info.min), int(info.max)


def _check_parameters(scale: Any) -> Any:
    if not np.isfinite(scale).all() or not (np.asarray(scale) > 0).all():
        raise FormatError(f"its scale is {np.asarray(scale).reshape(-1)[0]}", hint="quantize the model again")
    return scale


def quantize(
    call: Call, x: torch.Tensor, scale: Any, zero: Any, dtype: torch.dtype, axis: int, kind: str = ""
) -> Stored:
    """Quantize `x` to `dtype`: with one scale, or one per slice along `axis`."""
    _check_parameters(scale)
    held, shift = HELD.get(dtype, (dtype, 0)) if not kind else (dtype, 0)
    low, high = (one - shift for one in limits(dtype, kind))
    x = to(x, torch.float32)
    if np.size(scale) == 1:
        one, at = float(np.reshape(scale, -1)[0]), int(np.reshape(zero, -1)[0]) - shift
        made = _QD.quantize_per_tensor.default(x, one, at, low, high, held)
        return Stored(made, bool(shift), one, at)
    scales = call.constant(np.asarray(scale, np.float32).reshape(-1))
    zeros = call.constant(np.asarray(zero, np.int64).reshape(-1) - shift)
    return Stored(_QD.quantize_per_channel.default(x, scales, zeros, axis % x.dim(), low, high, held), bool(shift))


def dequantize(call: Call, index: int, scale: Any, zero: Any, axis: int) -> torch.Tensor:
    """Dequantize an integer input to float32."""
    _check_parameters(scale)
    tensor, shift = call.stored_input(index)
    return dequantize_tensor(call, tensor, shift, scale, zero, axis)


def dequantize_tensor(call: Call, tensor: torch.Tensor, shift: int, scale: Any, zero: Any, axis: int) -> torch.Tensor:
    """Dequantize a stored tensor to float32; `shift` is its offset below the model's values."""
    low, high = limits(tensor.dtype)
    if np.size(scale) == 1:
        one, at = float(np.reshape(scale, -1)[0]), int(np.reshape(zero, -1)[0]) - shift
        return _QD.dequantize_per_tensor.default(tensor, one, at, low, high, tensor.dtype)
    scales = call.constant(np.asarray(scale, np.float32).reshape(-1))
    zeros = call.constant(np.asarray(zero, np.int64).reshape(-1) - shift)
    if np.size(zero) == 1:
        zeros = zeros.expand(np.size(scale))
    return _QD.dequantize_per_channel.default(tensor, scales, zeros, axis % tensor.dim(), low, high, tensor.dtype)


def parameters(call: Call, scale: int, zero: int) -> tuple[Any, Any]:
    """Return scales and zero points of inputs `scale` and `zero`."""
    scales = np.asarray(call.constant_input(scale), np.float32)
    zeros = np.asarray(call.constant_input(zero)) if call.has(zero) else np.zeros_like(scales, np.int64)
    if zeros.size not in (1, scales.size):
        raise FormatError(f"it has {scales.size} scales and {zeros.size} zero points", hint="quantize the model again")
    if zeros.size == 1 and scales.size > 1:
        zeros = np.broadcast_to(zeros.reshape(-1), scales.reshape(-1).shape)
    return scales, zeros.astype(np.int64)
