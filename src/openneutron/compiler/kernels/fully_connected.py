"""FULLY_CONNECTED: one dot product per output channel, rounded as round(double(acc) * m) but in integers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import (
    activation_is_clamp,
    bias_fits,
    bias_scale_matches,
    clamp_of,
    is_wide,
    narrow_sums,
    not_empty,
    require_input,
    same_activations,
    static_weights,
    weights_as_int8,
    weights_scales_match,
)
from openneutron.compiler.kernels.wide import wide_sums_fit
from openneutron.compiler.l1 import Node, RowDemand
from openneutron.compiler.legalizer import Legalizer, shape4
from openneutron.compiler.numbers.multipliers import ExactTable, channel_table, exact_multipliers
from openneutron.compiler.numbers.packing import fold_zero_point, pack_dense
from openneutron.compiler.signature import OpSignature
from openneutron.litert.graph import DType
from openneutron.machine.targets import Target
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.verdict import OK, Verdict, limit, no


@dataclass(frozen=True)
class FullyConnectedParams:
    """Parameters of a `fully_connected` call."""

    input_zero: int = param("folded into the bias; kept for the reader")
    weights_zero: int = param("zero point of the stored weights; times the sum of activations, it is subtracted")
    output_zero: int = param("added after requantizing")
    clamp_low: int = param("smallest output")
    clamp_high: int = param("largest output")


ABI = register(
    KernelAbi(
        id=4,
        name="fully_connected",
        abi=1,
        operands=("input", "weights", "table", "lut?", "output"),
        params=FullyConnectedParams,
        cost="fc",
        meaning="product with constant weights [Cout/M][K/N][M][N], exact rounding; each pixel is one input vector",
    )
)


@limit("weights must be [outputs, inputs] in the default format, the input a whole number of vectors")
def shapes_agree(op: OpSignature, target: Target) -> Verdict:
    x, w, y = require_input(op, 0), require_input(op, 1), op.outputs[0]
    if len(w.shape) != 2 or (op.options is not None and op.options.weightsFormat != 0):
        return no(f"weights are {list(w.shape)}{'' if len(w.shape) != 2 else ' in a shuffled format'}")
    outputs, inputs = w.shape
    count = math.prod(x.shape)
    if count % inputs or y.shape[-1:] != (outputs,) or math.prod(y.shape) != count // inputs * outputs:
        return no(f"input {list(x.shape)}, weights {list(w.shape)}, output {list(y.shape)}")
    if op.options is not None and op.options.keepNumDims and x.shape[-1] != inputs:
        return no(f"keep_num_dims with input {list(x.shape)} and weights {list(w.shape)}")
    return OK


@limit("only INT8 weights with one scale may have a zero point, and none with INT16; UINT8 weights must have one scale")
def weights_zero_per_tensor(op: OpSignature, target: Target) -> Verdict:
    w = require_input(op, 1)
    assert w.quantization is not None
    if is_wide(op) and any(w.quantization.zero_point):
        return no("the weights of 16-bit activations have a zero point", hint="quantize weights symmetrically")
    if not w.quantization.per_channel:
        return OK
    if w.dtype is DType.UINT8:
        return no(f"UINT8 weights have {len(w.quantization.scale)} scales", hint="quantize to INT8")
    return no("per-channel weights have a zero point") if any(w.quantization.zero_point) else OK


@limit("the largest possible dot product and the bias must stay within INT32 output steps")
def result_fits(op: OpSignature, target: Target) -> Verdict:
    x, w, y, bias = require_input(op, 0), require_input(op, 1), op.outputs[0], op.input(2)
    assert w.quantization is not None
    # Both factors of each product have at most 8 bits plus a zero point, or 16 and 8 bits.
    largest = 32768 * 128 if is_wide(op) else 255 * 255
    factors = np.abs(np.asarray(w.quantization.scale)) * x.scale / y.scale
    products = w.shape[1] * largest
    reach = factors.max() * products
    if bias is not None and bias.magnitudes is not None:
        sums = products + bias.magnitudes
        if not is_wide(op) or narrow_sums(op):
            sums = np.minimum(sums, 2.0**31)  # sums of 32 bits wrap
        reach = max(reach, (factors * sums).max(initial=0.0))
    return OK if reach < 2.0**31 else no(f"it reaches {reach:.3g} steps", hint="calibrate on real data")


@limit("where a weight scale is negative, a multiplier of 31 bits must replace every factor")
def negative_factors_proved(op: OpSignature, target: Target) -> Verdict:
    w = require_input(op, 1)
    assert w.quantization is not None
    if min(w.quantization.scale) >= 0:
        return OK
    if w.dtype is DType.UINT8:
        return no("UINT8 weights have a negative scale", hint="quantize to INT8")
    try:
        _exact(op)
    except ValueError:
        return no("some have none", hint="quantize with positive scales")
    return OK


def _exact(op: OpSignature) -> ExactTable:
    """Return the multipliers of all output channels."""
    x, w, y = require_input(op, 0), require_input(op, 1), op.outputs[0]
    assert w.quantization is not None
    low, high = clamp_of(op)
    reals = tuple(x.scale * scale / y.scale for scale in w.quantization.scale)
    return _exact_table(reals * w.shape[0] if len(reals) == 1 else reals, low - y.zero_point, high - y.zero_point)


@lru_cache(maxsize=64)  # a layer is asked about when it is checked, compiled, and planned by stock rules
def _exact_table(reals: tuple[float, ...], low: int, high: int) -> ExactTable:
    return exact_multipliers(reals, low, high)


@serves(
    "FULLY_CONNECTED",
    limits=(
        not_empty,
        same_activations,
        static_weights,
        shapes_agree,
        weights_zero_per_tensor,
        bias_fits,
        weights_scales_match,
        bias_scale_matches,
        activation_is_clamp,
        result_fits,
        negative_factors_proved,
        wide_sums_fit,
    ),
)
def legalize(state: Legalizer) -> None:
    """Emit the kernel of docs/numerics.md, Fully connected; its multipliers are proved equal to double arithmetic."""
    x, w, y = require_input(state.signature, 0), require_input(state.signature, 1), state.signature.outputs[0]
    weights, weights_zero = weights_as_int8(state.constant(1), w)
    outputs, inputs = weights.shape
    bias = state.constant(2).astype(np.int64).reshape(-1) if state.has(2) else np.zeros(outputs, np.int64)
    vectors = shape4((*y.shape[:-1], inputs))
    source = state.value(0)
    streams = state.graph.values[source].shape == vectors
    if not streams:
        source = state.view(source, vectors, f"{x.name} as vectors")
    if is_wide(state.signature):
        from openneutron.compiler.kernels.fully_connected16 import emit_fully_connected16  # most models have 8 bits

        emit_fully_connected16(state, source, weights, bias, streams=streams)
        return
    low, high = clamp_of(state.signature)
    exact = _exact(state.signature)
    units, length = state.target.units, state.target.length
    folded = fold_zero_point(bias, weights, x.zero_point, weights_zero)
    packed = pack_dense(weights.reshape(outputs, 1, inputs), units, length)
    table = channel_table(folded, exact.multipliers, exact.shifts, units)
    state.emit(
        Node(
            kernel=ABI.name,
            operands=[source, packed, table, None, state.output()],
            output=state.output(),
            params=FullyConnectedParams(x.zero_point, weights_zero, y.zero_point, low, high),
            rounding=exact.rounding,
            demand={0: RowDemand()} if streams else None,
            macs=math.prod(y.shape) * inputs,
        )
    )
