"""QuantizeLinear, DequantizeLinear and their dynamic form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from openneutron.onnx.ops import converts
from openneutron.onnx.ops._quantized import dequantize, limits, parameters, quantize
from openneutron.onnx.ops._types import to
from openneutron.onnx.ops.elementwise import cast
from openneutron.onnx.ops.nbits import MICROSOFT, join_blocks
from openneutron.onnx.tensors import torch_type, type_name

if TYPE_CHECKING:
    from openneutron.onnx.call import Call

_SMALL = ("INT4", "UINT4", "INT2", "UINT2")


def _axis(call: Call) -> int:
    return int(call.attribute("axis", 1))


def _type(call: Call) -> tuple[torch.dtype, str]:
    """Return the type to quantize to, and its name if it is stored in a larger one."""
    code = int(call.attribute("output_dtype", 0))
    if code:
        name = type_name(code)
        return torch_type(code), name if name in _SMALL else ""
    if call.has(2):
        kind = call.small_type(2)
        return call.tensor(2).dtype, kind
    return torch.uint8, ""


def _blocks(x: torch.Tensor, parameter: torch.Tensor, axis: int, block: int) -> torch.Tensor:
    """Repeat one number per block of an axis to the shape of `x`."""
    return parameter.repeat_interleave(block, axis).narrow(axis, 0, x.shape[axis])


def _broadcast_parameter(call: Call, index: int, x: torch.Tensor) -> torch.Tensor:
    """Return a scale or zero point in a shape that broadcasts with `x`."""
    parameter = call.tensor(index)
    if parameter.numel() == 1:
        return parameter.reshape(())
    axis = _axis(call) % x.dim()
    block = int(call.attribute("block_size", 0))
    if block:
        return _blocks(x, parameter, axis, block)
    return parameter.reshape([-1 if at == axis else 1 for at in range(x.dim())])


@converts("QuantizeLinear")
@converts("QuantizeLinear", domain=MICROSOFT)
def quantize_linear(call: Call) -> Any:
    """Quantize with the model's own scale and zero point."""
    x = call.tensor(0)
    dtype, kind = _type(call)
    if dtype.is_floating_point:
        return cast(call, x / _broadcast_parameter(call, 1, x), dtype)
    if call.attribute("block_size", 0) or not call.is_known(1) or (call.has(2) and not call.is_known(2)) or not x.dim():
        low, high = limits(dtype, kind)
        zero = _broadcast_parameter(call, 2, x).to(torch.float32) if call.has(2) else 0.0
        steps = torch.round(to(x, torch.float32) / to(_broadcast_parameter(call, 1, x), torch.float32)) + zero
        return torch.clamp(steps, low, high).to(dtype if dtype not in (torch.uint16,) else torch.int32).to(dtype)
    scale, zero = parameters(call, 1, 2)
    return quantize(call, x, scale, zero, dtype, _axis(call), kind)


@converts("DequantizeLinear", keep=True)
@converts("DequantizeLinear", domain=MICROSOFT, keep=True)
def dequantize_linear(call: Call) -> torch.Tensor:
    """Dequantize with the model's own scale and zero point."""
    x = call.value(0).like
    scale = call.value(1).like
    if call.keep and (joined := join_blocks(call, _axis(call), int(call.attribute("block_size", 0)))) is not None:
        return joined
    code = int(call.attribute("output_dtype", 0))
    wanted = call.dtype(code) if code else scale.dtype
    plain = not x.is_floating_point() and x.dtype != torch.uint32 and x.dim() and not call.attribute("block_size", 0)
    if plain and call.is_known(1) and (not call.has(2) or call.is_known(2)):
        scales, zeros = parameters(call, 1, 2)
        if wanted in (torch.float32,):
            return dequantize(call, 0, scales, zeros, _axis(call))
    tensor = call.tensor(0)
    real = to(tensor, torch.float32) - (_broadcast_parameter(call, 2, tensor).float() if call.has(2) else 0.0)
    return to(real * to(_broadcast_parameter(call, 1, tensor), torch.float32), wanted)


@converts("DynamicQuantizeLinear")
def dynamic_quantize(call: Call) -> tuple[Any, ...]:
    """Quantize to UINT8 with a scale found at run time; this part stays on the CPU."""
    x = call.tensor(0)
    low, high = torch.clamp(x.amin(), max=0.0), torch.clamp(x.amax(), min=0.0)
    scale = (high - low) / 255.0
    zero = torch.clamp(torch.round(-low / scale), 0, 255)
    stored = torch.clamp(torch.round(x / scale) + zero, 0, 255).to(torch.uint8)
    return stored, scale, zero.to(torch.uint8)
