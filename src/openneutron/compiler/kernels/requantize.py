"""QUANTIZE between types of 8 and 16 bits, and the RELU family, which rescales and clamps."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import ACTIVATIONS, check_quantized, not_empty, range_of
from openneutron.compiler.kernels.elementwise import (
    emit_unary,
    one_activation_type,
    one_byte_type,
    rescale_fits,
    same_shape,
)
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.numbers.multipliers import multiplier, round_half_away
from openneutron.compiler.signature import OpSignature
from openneutron.litert.codes import CLAMPS
from openneutron.litert.graph import DType
from openneutron.machine.targets import Target
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.microcode.table import Rounding
from openneutron.verdict import OK, Verdict, limit, no


@dataclass(frozen=True)
class RequantizeParams:
    """Parameters of a `requantize` call."""

    input_zero: int = param("subtracted first")
    multiplier: int = param("31-bit factor")
    shift: int = param("power of two that goes with it")
    output_zero: int = param("added after rescaling")
    clamp_low: int = param("smallest output")
    clamp_high: int = param("largest output")


ABI = register(
    KernelAbi(
        id=17,
        name="requantize",
        abi=1,
        operands=("input", "output"),
        params=RequantizeParams,
        cost="element",
        meaning="rescale values of 8 or 16 bits to another scale, zero point, sign, width or clamp",
    )
)


@limit("input and output must be INT8, UINT8 or INT16 (not UINT8 and INT16), per tensor, INT16 with zero point 0")
def known_types(op: OpSignature, target: Target) -> Verdict:
    for tensor in (op.inputs[0], op.outputs[0]):
        assert tensor is not None
        if tensor.dtype is DType.FLOAT32:
            hint = "convert the model with INT8 inputs, and float operators to INT8 ones"
            return no(f"tensor {tensor.name!r} is float32", hint=hint)
        verdict = check_quantized(tensor, ACTIVATIONS)
        if not verdict:
            return verdict
    types = {op.inputs[0].dtype, op.outputs[0].dtype} if op.inputs[0] else set()
    if types == {DType.UINT8, DType.INT16}:
        return no("LiteRT has no QUANTIZE between UINT8 and INT16", hint="go over INT8")
    return OK


@serves("QUANTIZE", limits=(not_empty, known_types, same_shape, rescale_fits))
def legalize_quantize(state: Legalizer) -> None:
    """The factor is a quotient of doubles (docs/numerics.md, Quantize and dequantize)."""
    x, y = state.signature.inputs[0], state.signature.outputs[0]
    assert x is not None
    m, shift = multiplier(x.scale / y.scale)
    low, high = range_of(y.dtype)
    params = RequantizeParams(x.zero_point, m, shift, y.zero_point, low, high)
    emit_unary(state, ABI.name, [], params, Rounding.DOUBLE)


@serves("RELU", "RELU6", limits=(not_empty, one_activation_type, same_shape, rescale_fits))
@serves("RELU_N1_TO_1", "RELU_0_TO_1", limits=(not_empty, one_byte_type, same_shape, rescale_fits))
def legalize_relu(state: Legalizer) -> None:
    """The factor is a quotient of float32 (docs/numerics.md, Clamps); bounds are in steps of the output."""
    x, y = state.signature.inputs[0], state.signature.outputs[0]
    assert x is not None
    m, shift = multiplier(float(np.float32(x.scale) / np.float32(y.scale)))
    low, high = range_of(y.dtype)

    def steps(real: float) -> int:
        return y.zero_point + round_half_away(float(np.float32(real) / np.float32(y.scale)))

    least, most = CLAMPS[state.op.code]
    params = RequantizeParams(
        x.zero_point,
        m,
        shift,
        y.zero_point,
        max(low, steps(least)),
        high if math.isinf(most) else min(high, steps(most)),
    )
    emit_unary(state, ABI.name, [], params, Rounding.DOUBLE)
