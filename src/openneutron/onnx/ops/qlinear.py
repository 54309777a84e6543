"""Operators on quantized tensors (QOperator form), each as a dequantize, the float operator and a quantize."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn import functional

from openneutron.errors import FormatError
from openneutron.onnx.ops import converts
from openneutron.onnx.ops._quantized import dequantize, parameters, quantize
from openneutron.onnx.ops.conv import convolve
from openneutron.onnx.ops.linear import product
from openneutron.onnx.ops.nbits import MICROSOFT
from openneutron.onnx.values import Stored

if TYPE_CHECKING:
    from openneutron.onnx.call import Call


def _real(call: Call, index: int, scale: int, zero: int, axis: int = 0) -> torch.Tensor:
    return dequantize(call, index, *parameters(call, scale, zero), axis)


def _quantize_result(call: Call, y: torch.Tensor, scale: int, zero: int, like: int = 0) -> Stored:
    dtype = call.unsigned_type(zero) if call.has(zero) else call.unsigned_type(like)
    return quantize(call, y, *parameters(call, scale, zero), dtype, 1)


@converts("QLinearConv", keep=True)
def conv(call: Call) -> Stored:
    """Convolve; the bias is INT32 at the scale of input times weights."""
    bias = None
    if call.has(8):
        scale = np.asarray(call.constant_input(1), np.float32) * np.asarray(call.constant_input(4), np.float32)
        bias = dequantize(call, 8, scale, np.zeros_like(scale, np.int64), 0)
    y = convolve(call, _real(call, 0, 1, 2), _real(call, 3, 4, 5), bias)
    return _quantize_result(call, y, 6, 7)


@converts("QLinearMatMul", keep=True)
def matmul(call: Call) -> Stored:
    """Multiply matrices, with a scale per row on the left and per column on the right."""
    left = _matrix(call, 0, 1, 2, -2)
    right = _matrix(call, 3, 4, 5, -1)
    if call.value(3).data is not None and right.dim() == 2 and left.dim() >= 2:
        return _quantize_result(call, functional.linear(left, right.t()), 6, 7)
    return _quantize_result(call, torch.matmul(left, right), 6, 7)


def _matrix(call: Call, index: int, scale: int, zero: int, axis: int) -> torch.Tensor:
    scales, zeros = parameters(call, scale, zero)
    tensor = call.value(index).like
    if scales.size > 1 and (tensor.dim() < 2 or scales.size != tensor.shape[axis]):
        x = call.tensor(index)
        shape = scales.shape if scales.ndim == x.dim() else [*scales.shape, 1] if axis == -2 else scales.shape
        whole = call.constant(scales.reshape(shape)), call.constant(zeros.reshape(shape).astype(np.float32))
        return (x.float() - whole[1]) * whole[0]
    return dequantize(call, index, scales, zeros, axis)


@converts("QGemm", domain=MICROSOFT, keep=True)
def gemm(call: Call) -> Any:
    """Compute a linear layer, quantized if an output scale is given."""
    alpha = float(call.attribute("alpha", 1.0))
    x = _real(call, 0, 1, 2)
    x = x.t() if call.attribute("transA", 0) else x
    transposed = bool(call.attribute("transB", 0))
    weight = _real(call, 3, 4, 5, 0 if transposed else 1)
    weight = weight if transposed else weight.t()
    bias = None
    if call.has(6):
        scale = alpha * np.asarray(call.constant_input(1), np.float32) * np.asarray(call.constant_input(4), np.float32)
        bias = dequantize(call, 6, scale, np.zeros_like(scale, np.int64), 0)
    y = functional.linear(x, weight, bias if bias is None or bias.dim() == 1 else bias.reshape(-1))
    if alpha != 1.0:
        raise call.refuse(f"its alpha is {alpha}", "fold it into the scales")
    return y if not call.has(7) else _quantize_result(call, y, 7, 8)


def _binary(function: Callable[[Any, Any], torch.Tensor]) -> Callable[[Call], Stored]:
    def convert(call: Call) -> Stored:
        y = function(_real(call, 0, 1, 2), _real(call, 3, 4, 5))
        return _quantize_result(call, y, 6, 7)

    return convert


converts("QLinearAdd", domain=MICROSOFT, keep=True)(_binary(torch.add))
converts("QLinearMul", domain=MICROSOFT, keep=True)(_binary(torch.mul))


def _unary(function: Callable[[Call, torch.Tensor], torch.Tensor]) -> Callable[[Call], Stored]:
    def convert(call: Call) -> Stored:
        return _quantize_result(call, function(call, _real(call, 0, 1, 2)), 3, 4)

    return convert


def _softmax(call: Call, x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, int(call.attribute("axis", -1)))


def _global_mean(call: Call, x: torch.Tensor) -> torch.Tensor:
    if call.attribute("channels_last", 0):
        raise call.refuse("its channels are last", "export with channels first")
    return functional.adaptive_avg_pool2d(x, (1, 1)) if x.dim() == 4 else x.mean(list(range(2, x.dim())), True)


def _mean(call: Call, x: torch.Tensor) -> torch.Tensor:
    from openneutron.onnx.ops.pool import mean_of

    if call.attribute("channels_last", 0):
        raise call.refuse("its channels are last", "export with channels first")
    return mean_of(call, x)


_UNARY: dict[str, Callable[[Any, torch.Tensor], torch.Tensor]] = {
    "QLinearSigmoid": lambda call, x: torch.sigmoid(x),
    "QLinearLeakyRelu": lambda call, x: functional.leaky_relu(x, float(call.attribute("alpha", 0.01))),
    "QLinearSoftmax": _softmax,
    "QLinearGlobalAveragePool": _global_mean,
    "QLinearAveragePool": _mean,
}
for _name, _function in _UNARY.items():
    converts(_name, domain=MICROSOFT, keep=True)(_unary(_function))


@converts("QLinearConcat", domain=MICROSOFT, keep=True)
def concat(call: Call) -> Stored:
    """Concatenate tensors of different scales."""
    if len(call.inputs) % 3 != 2:
        raise FormatError(f"it has {len(call.inputs)} inputs", hint="quantize the model again")
    parts = [_real(call, at, at + 1, at + 2) for at in range(2, len(call.inputs), 3)]
    return _quantize_result(call, torch.cat(parts, int(call.attribute("axis", 0))), 0, 1)


@converts("QLinearReduceMean", domain=MICROSOFT, keep=True)
def reduce_mean(call: Call) -> Stored:
    """Return the mean over axes."""
    x = _real(call, 0, 1, 2)
    axes = [int(one) for one in call.attribute("axes") or range(x.dim())]
    return _quantize_result(call, x.mean(axes, bool(call.attribute("keepdims", 1))), 3, 4)


@converts("FusedMatMul", domain=MICROSOFT)
def fused_matmul(call: Call) -> torch.Tensor:
    """Multiply matrices, with a factor and optional transpositions."""
    left, right = call.tensor(0), call.tensor(1)
    alpha = float(call.attribute("alpha", 1.0))
    if not call.attribute("transA", 0) and not call.attribute("transB", 0):
        y = product(call, left, right)
    else:
        left = left.transpose(-1, -2) if call.attribute("transA", 0) else left
        y = torch.matmul(left, right.transpose(-1, -2) if call.attribute("transB", 0) else right)
    return y if alpha == 1.0 else y * alpha


@converts("Gelu", domain=MICROSOFT)
def gelu(call: Call) -> torch.Tensor:
    """Apply the exact GELU."""
    return functional.gelu(call.tensor(0))


@converts("FastGelu", domain=MICROSOFT)
def fast_gelu(call: Call) -> torch.Tensor:
    """Add a bias and apply GELU's tanh approximation."""
    x = call.tensor(0)
    return functional.gelu(x + call.tensor(1) if call.has(1) else x, approximate="tanh")


@converts("QuickGelu", domain=MICROSOFT)
def quick_gelu(call: Call) -> torch.Tensor:
    """Apply GELU's sigmoid approximation."""
    x = call.tensor(0)
    return x * torch.sigmoid(x * float(call.attribute("alpha", 1.702)))


@converts("FusedConv", domain=MICROSOFT)
def fused_conv(call: Call) -> torch.Tensor:
    """Compute a convolution, an addition and an activation."""
    y = convolve(call, call.tensor(0), call.tensor(1), call.optional(2))
    y = y + call.tensor(3) if call.has(3) else y
    name = call.text("activation", "", ("", "Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip", "HardSigmoid"))
    numbers = [float(one) for one in call.attribute("activation_params") or ()]
    if name == "LeakyRelu":
        return functional.leaky_relu(y, numbers[0] if numbers else 0.01)
    if name == "Clip":
        return torch.clamp(y, *numbers)
    if name == "HardSigmoid":
        return torch.clamp(y * numbers[0] + numbers[1], 0.0, 1.0)
    plain: dict[str, Any] = {"": lambda x: x, "Relu": torch.relu, "Sigmoid": torch.sigmoid, "Tanh": torch.tanh}
    return plain[name](y)
