"""Shared by several kernels: limits, each with the rule that users read, and conversion of weights to integers."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from openneutron.compiler.numbers.geometry import WINDOW_MAX, Window, window_of
from openneutron.compiler.numbers.multipliers import (
    INT8_RANGE,
    INT16_RANGE,
    MAX_LEFT_SHIFT,
    UINT8_RANGE,
    activation_range,
    multiplier,
    multipliers,
)
from openneutron.compiler.signature import OpSignature, TensorSignature
from openneutron.litert.graph import DType
from openneutron.machine.targets import Target
from openneutron.verdict import OK, Verdict, limit, no

BYTES = (DType.INT8, DType.UINT8)
ACTIVATIONS = (*BYTES, DType.INT16)
_RANGES = {DType.INT8: INT8_RANGE, DType.UINT8: UINT8_RANGE, DType.INT16: INT16_RANGE}
_WIDE_LEFT_SHIFT = 7  # of the reference's multiplication of 64-bit sums
_INT32_BIAS = 2  # the schema's number of INT32, as a convolution's quantized_bias_type has it
QUANTIZE_HINT = "quantize the model to INT8: a float .tflite with --calibration, others where they are made"
_UINT8_OFFSET = 128  # turns a UINT8 weight into an INT8 one; its zero point moves along
_BIAS_TOLERANCE = 0.02  # of an output step per step of the bias: the bound LiteRT itself applies where it checks


def require_input(op: OpSignature, index: int) -> TensorSignature:
    """Return input `index`, which the limits have already found present."""
    tensor = op.input(index)
    assert tensor is not None
    return tensor


def range_of(dtype: DType) -> tuple[int, int]:
    """Return the smallest and largest stored value of a type of 8 or 16 bits."""
    return _RANGES[dtype]


def is_wide(op: OpSignature) -> bool:
    """Return whether the operator has 16-bit output activations."""
    return op.outputs[0].dtype is DType.INT16


def check_quantized(tensor: TensorSignature | None, dtypes: tuple[DType, ...] = BYTES) -> Verdict:
    """Check that the tensor exists and has one of these types, one usable scale and a valid zero point."""
    if tensor is None:
        return no("a required input is absent")
    if tensor.dtype not in dtypes:
        return no(f"tensor {tensor.name!r} is {tensor.dtype}", hint=QUANTIZE_HINT)
    if tensor.quantization is None or not tensor.quantization.scale:
        return no(f"tensor {tensor.name!r} has no scale", hint=QUANTIZE_HINT)
    if tensor.quantization.per_channel:
        return no(f"tensor {tensor.name!r} is quantized per channel", hint="quantize activations per tensor")
    if not (math.isfinite(tensor.scale) and tensor.scale > 0):
        return no(f"tensor {tensor.name!r} has scale {tensor.scale}")
    if tensor.dtype is DType.INT16 and tensor.zero_point:
        return no(
            f"tensor {tensor.name!r} is INT16 with zero point {tensor.zero_point}",
            hint="quantize 16-bit activations symmetrically, with zero point 0",
        )
    low, high = range_of(tensor.dtype)
    if not low <= tensor.zero_point <= high:
        return no(f"tensor {tensor.name!r} has zero point {tensor.zero_point}")
    return OK


@limit("input and output must be INT8, UINT8 or INT16, of one type, quantized per tensor, INT16 with zero point 0")
def same_activations(op: OpSignature, target: Target) -> Verdict:
    for tensor in (op.input(0), op.outputs[0]):
        verdict = check_quantized(tensor, ACTIVATIONS)
        if not verdict:
            return verdict
    x, y = require_input(op, 0), op.outputs[0]
    return OK if x.dtype is y.dtype else no(f"input is {x.dtype}, output {y.dtype}", hint="insert a QUANTIZE")


@limit("input and output must be INT8, quantized per tensor")
def int8_activations(op: OpSignature, target: Target) -> Verdict:
    for tensor in (op.input(0), op.outputs[0]):
        verdict = check_quantized(tensor, (DType.INT8,))
        if not verdict:
            return verdict
    return OK


@limit("input and output must both be INT8 or both INT16, quantized per tensor, INT16 with zero point 0")
def signed_activations(op: OpSignature, target: Target) -> Verdict:
    for tensor in (op.input(0), op.outputs[0]):
        verdict = check_quantized(tensor, (DType.INT16,) if is_wide(op) else (DType.INT8,))
        if not verdict:
            return verdict
    return OK


@limit("no tensor may be empty")
def not_empty(op: OpSignature, target: Target) -> Verdict:
    for tensor in (*op.inputs, *op.outputs):
        if tensor is not None and 0 in tensor.shape:
            return no(f"tensor {tensor.name!r} has shape {list(tensor.shape)}")
    return OK


@limit("input, filter and output must have four dimensions")
def four_dimensions(op: OpSignature, target: Target) -> Verdict:
    for tensor in (op.input(0), op.input(1), op.outputs[0]):
        if tensor is None or len(tensor.shape) != 4:
            return no(f"a shape is {list(tensor.shape) if tensor else 'absent'}")
    return OK


@limit("input and output must have four dimensions and the same channels")
def pool_dimensions(op: OpSignature, target: Target) -> Verdict:
    x, y = op.input(0), op.outputs[0]
    if x is None or len(x.shape) != 4 or len(y.shape) != 4 or x.shape[3] != y.shape[3]:
        return no(f"input {list(x.shape) if x else 'absent'}, output {list(y.shape)}")
    return OK


# Where LiteRT unpacks INT4 weights and goes on as with INT8; elsewhere it reads their bytes as INT8, or refuses.
_INT4_WEIGHTS = frozenset(
    {(code, dtype) for code in ("FULLY_CONNECTED", "CONV_2D") for dtype in (DType.INT8, DType.INT16)}
    | {("DEPTHWISE_CONV_2D", DType.INT8)}
)


@limit(
    "weights must be constant and quantized, of the type of the input (INT8 for 16-bit activations), or INT4 where LiteRT "
    "unpacks them: FULLY_CONNECTED, CONV_2D, and DEPTHWISE_CONV_2D of INT8"
)
def static_weights(op: OpSignature, target: Target) -> Verdict:
    x, w = require_input(op, 0), op.input(1)
    if w is None or not w.constant:
        return no("weights are computed at run time", hint="make the weights constant")
    if w.dtype is DType.INT4 and (op.code, x.dtype) in _INT4_WEIGHTS:
        return OK if w.quantization and w.quantization.scale else no("weights have no scale", hint=QUANTIZE_HINT)
    if w.dtype is not (DType.INT8 if x.dtype is DType.INT16 else x.dtype):
        return no(f"weights are {w.dtype}, the input is {x.dtype}", hint=QUANTIZE_HINT)
    if w.quantization is None or not w.quantization.scale:
        return no("weights have no scale", hint=QUANTIZE_HINT)
    return OK


@limit("INT8 and INT4 weights must have zero point 0; UINT8 weights must be quantized per tensor")
def weights_zero_allowed(op: OpSignature, target: Target) -> Verdict:
    w = require_input(op, 1)
    assert w.quantization is not None
    if w.dtype is DType.UINT8 and min(w.quantization.scale) < 0:
        return no("UINT8 weights have a negative scale", hint="quantize to INT8")
    if w.dtype is not DType.UINT8 and any(w.quantization.zero_point):
        return no("weights have a zero point other than 0", hint="quantize weights symmetrically")
    if w.dtype is DType.UINT8 and w.quantization.per_channel:
        return no(f"UINT8 weights have {len(w.quantization.scale)} scales", hint="quantize to INT8")
    return OK


@limit("weights have one scale, or one per output channel along the output axis of the filter")
def weights_scales_match(op: OpSignature, target: Target) -> Verdict:
    w = require_input(op, 1)
    assert w.quantization is not None
    count, channels = len(w.quantization.scale), op.outputs[0].shape[-1]
    if count not in (1, channels):
        return no(f"{count} scales for {channels} output channels")
    axis = 3 if op.code == "DEPTHWISE_CONV_2D" else 0
    if count > 1 and w.quantization.axis != axis:
        return no(f"the scales run along dimension {w.quantization.axis}, not {axis}")
    return OK


@limit("a bias must be given")
def bias_given(op: OpSignature, target: Target) -> Verdict:
    return OK if op.input(2) is not None else no("there is none", hint="add a bias of zeros: LiteRT demands one too")


def narrow_sums(op: OpSignature) -> bool:
    """Return whether the reference sums 16-bit activations in INT32: it does if the operator's bias type is INT32."""
    return getattr(op.options, "quantizedBiasType", 0) == _INT32_BIAS


@limit("bias, where given, must be a constant vector with one value per output channel: INT32, or INT64 with INT16")
def bias_fits(op: OpSignature, target: Target) -> Verdict:
    bias = op.input(2)
    if bias is None:
        return OK
    if not bias.constant:
        return no("bias is computed at run time", hint="make the bias constant")
    if is_wide(op):
        wanted = DType.INT32 if narrow_sums(op) else DType.INT64
        if bias.dtype is not wanted:
            other = ", or say quantized_bias_type INT32" if bias.dtype is DType.INT32 else ""
            hint = f"store it as {str(wanted).upper()}{other}"
            return no(f"bias is {bias.dtype}, LiteRT reads {wanted} with 16-bit activations", hint=hint)
    elif bias.dtype is not DType.INT32:
        return no(f"bias is {bias.dtype}", hint="an INT8 model has INT32 biases")
    if bias.quantization and any(bias.quantization.zero_point):
        return no("bias has a zero point other than 0")
    channels = op.outputs[0].shape[-1]
    return OK if math.prod(bias.shape) == channels else no(f"bias {list(bias.shape)} for {channels} channels")


@limit("the bias scale must equal input scale times weight scale within 0.02 output steps")
def bias_scale_matches(op: OpSignature, target: Target) -> Verdict:
    x, w, y, bias = require_input(op, 0), require_input(op, 1), op.outputs[0], op.input(2)
    # A bias without scale is taken to be in accumulator steps, which is how LiteRT reads every bias.
    if bias is None or bias.quantization is None or not any(bias.quantization.scale) or w.quantization is None:
        return OK
    given, wanted = np.asarray(bias.quantization.scale), np.asarray(w.quantization.scale) * x.scale
    if given.size not in (1, wanted.size) and wanted.size != 1:
        return no(f"bias has {given.size} scales, the weights {wanted.size}")
    off = np.abs(wanted - given) / y.scale
    # LiteRT asks this of UINT8 and of FULLY_CONNECTED per tensor; elsewhere only a scale that is really another one
    # makes the result useless, not one that was rounded.
    strict = x.dtype is DType.UINT8 or (op.code == "FULLY_CONNECTED" and wanted.size == 1)
    wrong = (
        off > _BIAS_TOLERANCE if strict else (off > _BIAS_TOLERANCE) & (np.abs(wanted - given) > 0.01 * np.abs(wanted))
    )
    return OK if not wrong.any() else no(f"it is off by {off.max():.3g} output steps")


@limit("input scale times weight scale over output scale must stay below 2^30, of INT16 below 2^7")
def requantize_shifts_fit(op: OpSignature, target: Target) -> Verdict:
    largest = float(np.abs(factors(require_input(op, 0), require_input(op, 1), op.outputs[0])).max())
    if not math.isfinite(largest):
        return no("the factor is infinite", hint="calibrate on real data")
    _, shift = multiplier(largest)
    most = _WIDE_LEFT_SHIFT if is_wide(op) and not narrow_sums(op) else MAX_LEFT_SHIFT
    return OK if shift <= most else no(f"it is {largest:.3g}", hint="calibrate on real data")


@limit("fused activation must be NONE, RELU, RELU6 or RELU_N1_TO_1, with bounds that INT32 can hold")
def activation_is_clamp(op: OpSignature, target: Target) -> Verdict:
    activation = op.options.fusedActivationFunction if op.options is not None else 0
    if activation not in (0, 1, 2, 3):
        return no(f"the fused activation is number {activation}", hint="use a separate activation operator")
    bound = {2: 1.0, 3: 6.0}.get(activation, 0.0)
    scale = op.outputs[0].scale
    return OK if bound / scale < 2.0**31 else no(f"the bound {bound} at scale {scale:.3g} leaves INT32")


@limit("stride, dilation and kernel must be 1 to 32767, and the output as large as the window's steps")
def window_matches(op: OpSignature, target: Target) -> Verdict:
    if op.options is None:
        return no("the operator has no options", hint="the file is incomplete: convert the model again")
    x, y = require_input(op, 0), op.outputs[0]
    pool = hasattr(op.options, "filterHeight")
    size = (op.options.filterHeight, op.options.filterWidth) if pool else require_input(op, 1).shape[1:3]
    steps = (op.options.strideH, op.options.strideW)
    dilation = (getattr(op.options, "dilationHFactor", 1), getattr(op.options, "dilationWFactor", 1))
    if not all(1 <= number <= WINDOW_MAX for number in (*size, *steps, *dilation)):
        return no(f"kernel {list(size)}, stride {list(steps)}, dilation {list(dilation)}")
    window = window_of(op.options, (size[0], size[1]), (x.shape[1], x.shape[2]))
    if min(window.out_h, window.out_w) < 1:
        return no(f"kernel {list(size)} is larger than the input {list(x.shape[1:3])}", hint="use SAME padding")
    if (x.shape[0], window.out_h, window.out_w) != y.shape[:3]:
        return no(f"the window gives {[x.shape[0], window.out_h, window.out_w]}, the output is {list(y.shape)}")
    return OK if window.fits() else no(f"image {list(x.shape)} is too large for the window")


def pool_window(op: OpSignature) -> Window:
    """Return the window of a pool whose limits hold."""
    x = require_input(op, 0)
    return window_of(op.options, (op.options.filterHeight, op.options.filterWidth), (x.shape[1], x.shape[2]))


def value_range(tensor: TensorSignature) -> tuple[int, int]:
    """Return the smallest and largest value of the tensor's type."""
    return range_of(tensor.dtype)


def clamp_of(op: OpSignature) -> tuple[int, int]:
    """Return the range of the fused activation in the output's steps."""
    y = op.outputs[0]
    activation = op.options.fusedActivationFunction if op.options is not None else 0
    return activation_range(activation, y.scale, y.zero_point, value_range(y))


def factors(x: TensorSignature, w: TensorSignature, y: TensorSignature) -> npt.NDArray[np.float64]:
    """Accumulator step over output step, one per scale of the weights, rounded as docs/numerics.md, Real multipliers."""
    assert w.quantization is not None
    scales = np.array(w.quantization.scale)
    if x.dtype is DType.UINT8:
        with np.errstate(over="ignore"):
            products = (np.float32(x.scale) * scales.astype(np.float32)).astype(np.float64)
    else:
        products = x.scale * scales
    found: npt.NDArray[np.float64] = products / y.scale
    return found


def fixed_point(
    x: TensorSignature, w: TensorSignature, y: TensorSignature
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return multipliers and shifts for `Rounding.DOUBLE`: one per output channel, or one for all."""
    return multipliers(factors(x, w, y))


def weights_as_int8(data: npt.NDArray[np.generic], w: TensorSignature) -> tuple[npt.NDArray[np.int8], int]:
    """Return the weights as INT8, and their remaining zero point."""
    if w.dtype is DType.UINT8:
        return (data.astype(np.int16) - _UINT8_OFFSET).astype(np.int8), w.zero_point - _UINT8_OFFSET
    return data.astype(np.int8, copy=False), w.zero_point
