"""Weights of few bits that share a scale in blocks of inputs: MatMulNBits, and DequantizeLinear of 4-bit constants.

In a float model they become float weights, which the quantizer gives 4 bits in the same groups. In a quantized model they
become INT8 weights with a factor for each group (docs/numerics.md, 4-bit weights).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn import functional

from openneutron.errors import FormatError
from openneutron.litert.grouped_weights import MOST_LEVELS, join_groups
from openneutron.onnx.ops import converts
from openneutron.onnx.ops._quantized import dequantize_tensor

if TYPE_CHECKING:
    from openneutron.onnx.call import Call

MICROSOFT = "com.microsoft"
_PACKED_BITS = (2, 4, 8)


@converts("MatMulNBits", domain=MICROSOFT)
def matmul_nbits(call: Call) -> torch.Tensor:
    """Multiply by a matrix whose columns are stored in blocks of 2, 4 or 8 bits."""
    inputs, outputs = int(call.attribute("K", 0)), int(call.attribute("N", 0))
    bits, block = int(call.attribute("bits", 4)), int(call.attribute("block_size", 32))
    x = call.tensor(0)
    if bits not in _PACKED_BITS:
        raise call.refuse(f"its weights have {bits} bits", f"{', '.join(map(str, _PACKED_BITS))} are imported")
    if call.has(4):
        raise call.refuse("its input g_idx gives every input a group of its own", "quantize without act_order")
    if inputs < 1 or outputs < 1 or block < 1 or not x.dim() or x.shape[-1] != inputs:
        raise FormatError(
            f"K is {inputs}, N {outputs} and block_size {block}, the input has the shape {list(x.shape)}",
            hint="quantize the model again",
        )
    bias = call.optional(5)
    stored = _Blocks(call, inputs, outputs, bits, block)
    if call.keep and bits <= 4:
        values, scales = call.once(stored.join)
        weights = dequantize_tensor(call, call.constant(values), 0, scales, np.zeros(outputs, np.int64), 0)
        return functional.linear(x, weights, bias)
    return functional.linear(x, call.constant(stored.real), bias)


class _Blocks:
    """The stored weights of a MatMulNBits."""

    def __init__(self, call: Call, inputs: int, outputs: int, bits: int, block: int) -> None:
        self.call, self.bits, self.block = call, bits, block
        self.shape = outputs, -(-inputs // block), block
        self.inputs = inputs

    def real(self) -> Any:
        """Return the weights [outputs, inputs] in float32."""
        quotients, scales = self._quotients()
        return (quotients * scales[:, :, None]).reshape(len(scales), -1)[:, : self.inputs].astype(np.float32)

    def join(self) -> tuple[Any, Any]:
        """Return the weights [outputs, inputs] as INT8, and the scale of each output."""
        quotients, scales = self._quotients()
        _check_integers(quotients)
        values, channel_scales = join_groups(quotients.reshape(len(scales), -1).astype(np.int8), scales, self.block)
        return np.ascontiguousarray(values[:, : self.inputs]), channel_scales

    def _quotients(self) -> tuple[Any, Any]:
        """Return the stored numbers less their zero points, [outputs, blocks, inputs of a block], and the scales."""
        call, (outputs, blocks, block) = self.call, self.shape
        packed = self._known_numbers(1, outputs * blocks * (block * self.bits // 8), np.uint8)
        numbers = _unpack(packed.reshape(outputs * blocks, -1), self.bits).reshape(self.shape).astype(np.float32)
        scales = self._known_numbers(2, outputs * blocks, np.float32).reshape(outputs, blocks)
        if not np.isfinite(scales).all():
            raise FormatError("its scales are not all finite", hint="quantize the model again")
        zeros = np.full((outputs, blocks), 1 << (self.bits - 1), np.float32)
        if call.has(3):
            given = np.asarray(call.constant_input(3))
            if given.dtype == np.uint8:
                row = -(-blocks * self.bits // 8)
                zeros = _unpack(self._known_numbers(3, outputs * row, np.uint8).reshape(outputs, row), self.bits)[
                    :, :blocks
                ]
            else:
                zeros = self._known_numbers(3, outputs * blocks, np.float32).reshape(outputs, blocks)
        return numbers - zeros.astype(np.float32)[:, :, None], scales

    def _known_numbers(self, index: int, size: int, dtype: Any) -> Any:
        found = np.asarray(self.call.constant_input(index)).reshape(-1)
        if found.size != size:
            raise FormatError(
                f"its input {self.call.input_name(index)} has {found.size} numbers in place of {size}",
                hint="quantize the model again",
            )
        return found.astype(dtype)


def _unpack(packed: Any, bits: int) -> Any:
    """Return the numbers of rows of bytes, the lowest bits of each byte first."""
    parts = [packed >> at & ((1 << bits) - 1) for at in range(0, 8, bits)]
    return np.stack(parts, axis=-1).reshape(len(packed), -1)


def join_blocks(call: Call, axis: int, block: int) -> torch.Tensor | None:
    """Return the dequantized INT8 form of a 4-bit constant with its zero points and blocks of inputs; None for other tensors.

    `axis` is the dimension of the scales, or of their blocks where `block` is not 0.
    """
    value = call.value(0)
    if value.kind not in ("INT4", "UINT4", "INT2", "UINT2") or value.data is None or not call.is_known(1):
        return None
    if call.has(2) and not call.is_known(2):
        return None
    rank = value.data.dim()
    if rank < 2 or (block and axis % rank == 0 and rank != 2):
        return None
    made = call.once(lambda: _joined_constant(call, axis % rank, block))
    if made is None:
        return None
    values, channel_scales, channels = made
    return dequantize_tensor(call, call.constant(values), 0, channel_scales, np.zeros_like(channel_scales), channels)


def _joined_constant(call: Call, axis: int, block: int) -> Any:
    numbers = np.asarray(call.constant_input(0)).astype(np.int16)
    scales = np.asarray(call.constant_input(1), np.float32)
    zeros = np.asarray(call.constant_input(2)).astype(np.int16) if call.has(2) else np.zeros(scales.shape, np.int16)
    if not block:
        if scales.size not in (1, numbers.shape[axis]) or zeros.size not in (1, scales.size):
            return None
        along = [-1 if at == axis else 1 for at in range(numbers.ndim)]
        values = (numbers - zeros.reshape(along)).astype(np.int8)
        return values, np.broadcast_to(scales.reshape(-1), (numbers.shape[axis],)).copy(), axis
    blocks = -(-numbers.shape[axis] // block)
    wanted = (*numbers.shape[:axis], blocks, *numbers.shape[axis + 1 :])
    if scales.shape != wanted or zeros.shape != wanted or not np.isfinite(scales).all():
        return None
    channels = 1 if axis == 0 else 0
    spread = np.repeat(zeros, block, axis=axis).take(np.arange(numbers.shape[axis]), axis=axis)
    rows = np.moveaxis(numbers - spread, (channels, axis), (0, -1))
    factors = np.moveaxis(scales, (channels, axis), (0, -1))
    values, channel_scales = join_groups(rows.astype(np.int8), factors.reshape(len(rows), -1), block)
    return np.ascontiguousarray(np.moveaxis(values, (0, -1), (channels, axis))), channel_scales, channels


def _check_integers(quotients: Any) -> None:
    if (quotients != np.rint(quotients)).any() or np.abs(quotients).max(initial=0) > MOST_LEVELS:
        raise FormatError("its zero points are no integers of its bits", hint="quantize the model again")
