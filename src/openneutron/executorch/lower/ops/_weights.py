"""Constant weights and biases of convolution and linear layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from openneutron.executorch.lower.values import Order, Value
from openneutron.litert.graph import DType, Quantization
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from openneutron.executorch.lower.call import Call

# Biases beyond this are made to fit by a larger weight scale: half of INT32, so that products still have room; with
# 16-bit activations, whose biases are INT64, half of what LiteRT's 64-bit sums may reach.
_LARGEST_BIAS = {DType.INT8: 2.0**30, DType.INT16: 2.0**46}
_BIAS_TYPES = {DType.INT8: DType.INT32, DType.INT16: DType.INT64}


@limit("weights must be constant and quantized to INT8")
def constant_weights(call: Call) -> Verdict:
    name = next(key for key in ("weight", "mat2") if key in call.arguments)
    weight = call.value(name)
    if not weight.is_constant:
        return no("the weights are computed at run time", hint="make them a parameter")
    if weight.quantization is None or weight.storage.dtype is not DType.INT8:
        return no(
            f"the weights are {weight.storage.dtype}",
            hint="give calibration data, or quantize the model with NeutronQuantizer",
        )
    return OK


@limit("the bias must be constant")
def constant_bias(call: Call) -> Verdict:
    name = "bias" if "bias" in call.arguments else "self"
    bias = call.optional(name)
    return (
        OK if bias is None or bias.is_constant else no("the bias is computed at run time", hint="make it a parameter")
    )


def weights_and_bias(
    call: Call, x: Value, weight: Value, order: Order, channel_dim: int, bias: Value | None
) -> tuple[int, int]:
    """Return the tensors of weights (in `order`) and bias; `channel_dim` is the weights' output channel dimension."""
    assert weight.quantization is not None and x.quantization is not None
    channels = weight.shape[channel_dim]
    input_scale = x.quantization.scale[0]
    scales = np.asarray(weight.quantization.scale, np.float64)
    real = _real_bias(call, bias, channels)
    accumulator = input_scale * np.broadcast_to(scales, (channels,))
    largest, bias_type = _LARGEST_BIAS[x.storage.dtype], _BIAS_TYPES[x.storage.dtype]
    too_large = np.abs(real) > largest * accumulator
    if too_large.any():
        needed = np.nextafter(np.float32(np.abs(real) / (largest * input_scale)), np.float32(np.inf))
        full = np.broadcast_to(scales, (channels,)).astype(np.float32)
        scales = np.where(too_large, needed, full).astype(np.float64)
        weight_tensor = _rescale(call, weight, order, channel_dim, full, scales)
        accumulator = input_scale * scales
    else:
        weight_tensor = call.tensor(weight, order)
    stored = np.rint(real / accumulator).astype(bias_type.numpy)
    per_channel = accumulator if len(scales) > 1 else accumulator[:1]
    quantization = Quantization(tuple(float(np.float32(s)) for s in per_channel), (0,) * len(per_channel))
    return weight_tensor, call.constant("bias", stored, bias_type, quantization)


def _real_bias(call: Call, bias: Value | None, channels: int) -> npt.NDArray[np.float64]:
    if bias is None:
        return np.zeros(channels)
    stored = np.broadcast_to(bias.array().astype(np.float64).reshape(-1), (channels,))
    q = bias.quantization
    if q is not None:
        stored = (stored - np.asarray(q.zero_point)) * np.asarray(q.scale)
    if not np.isfinite(stored).all():
        raise call.reject("bias_not_finite", "the bias contains NaN or infinity", "train again without overflow")
    return stored


def _rescale(call: Call, weight: Value, order: Order, channel_dim: int, old: Any, new: Any) -> int:
    shape = [1] * weight.rank
    shape[channel_dim] = -1
    data = np.rint(weight.array() * (old / new).reshape(shape)).astype(np.int8).transpose(order)
    quantization = Quantization(tuple(float(np.float32(s)) for s in new), (0,) * len(new))
    return call.constant("weight", data, DType.INT8, quantization, axis=order.index(channel_dim))
