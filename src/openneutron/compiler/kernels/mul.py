"""MUL with broadcasting and fused activation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import not_empty
from openneutron.compiler.kernels.elementwise import (
    broadcasts,
    data_inputs,
    emit_binary,
    known_activation,
    one_activation_type,
    output_range,
    two_inputs,
)
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.numbers.multipliers import MAX_LEFT_SHIFT, multiplier
from openneutron.compiler.signature import OpSignature
from openneutron.machine.targets import Target
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.microcode.table import Rounding
from openneutron.verdict import OK, Verdict, limit, no


@dataclass(frozen=True)
class MulParams:
    """Parameters of a `mul` call."""

    zero1: int = param("zero point of the first input")
    zero2: int = param("zero point of the second input")
    multiplier: int = param("brings the product to the output's scale")
    shift: int = param("power of two that goes with it")
    output_zero: int = param("added last")
    clamp_low: int = param("smallest output")
    clamp_high: int = param("largest output")


ABI = register(
    KernelAbi(
        id=19,
        name="mul",
        abi=1,
        operands=("input1", "input2", "output"),
        params=MulParams,
        cost="element",
        meaning="product of two tensors of 8 or 16 bits, which broadcast",
    )
)


def _factor(op: OpSignature) -> float:
    """Return the product of the input scales over the output's, in float32 (docs/numerics.md, Real multipliers)."""
    x1, x2 = data_inputs(op)
    return float(np.float32(x1.scale) * np.float32(x2.scale) / np.float32(op.outputs[0].scale))


@limit("the product of the input scales over the output scale must stay below 2^30")
def product_fits(op: OpSignature, target: Target) -> Verdict:
    factor = _factor(op)
    fits = factor < float("inf") and multiplier(factor)[1] <= MAX_LEFT_SHIFT
    return OK if fits else no(f"it is {factor:g}", hint="calibrate on real data")


@serves("MUL", limits=(not_empty, two_inputs, one_activation_type, broadcasts, known_activation, product_fits))
def legalize(state: Legalizer) -> None:
    """Emit the kernel with the integer parameters of docs/numerics.md, Add, sub and mul."""
    op = state.signature
    x1, x2 = data_inputs(op)
    m, shift = multiplier(_factor(op))
    low, high = output_range(op)
    params = MulParams(x1.zero_point, x2.zero_point, m, shift, op.outputs[0].zero_point, low, high)
    emit_binary(state, ABI.name, params, Rounding.DOUBLE)
