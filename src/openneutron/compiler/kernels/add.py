"""ADD and SUB with broadcasting and fused activation."""

from __future__ import annotations

from dataclasses import dataclass

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.add16 import emit_add16, wide_sum_fits
from openneutron.compiler.kernels.common import is_wide, not_empty
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
from openneutron.compiler.numbers.multipliers import f32, multiplier
from openneutron.compiler.signature import OpSignature
from openneutron.machine.targets import Target
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.microcode.table import Rounding
from openneutron.verdict import OK, Verdict, limit, no

_HEAD_ROOM = 20  # bits by which inputs are shifted up before rescaling, as in the reference


@dataclass(frozen=True)
class AddParams:
    """Parameters of an `add` call."""

    zero1: int = param("zero point of the first input")
    multiplier1: int = param("brings the first input to the common scale")
    shift1: int = param("power of two that goes with it, at most 0")
    zero2: int = param("zero point of the second input")
    multiplier2: int = param("brings the second input to the common scale")
    shift2: int = param("power of two that goes with it, at most 0")
    subtract: int = param("1: the second input is subtracted")
    output_multiplier: int = param("brings the sum to the output's scale")
    output_shift: int = param("power of two that goes with it, at most 0")
    output_zero: int = param("added last")
    clamp_low: int = param("smallest output")
    clamp_high: int = param("largest output")


ABI = register(
    KernelAbi(
        id=18,
        name="add",
        abi=1,
        operands=("input1", "input2", "output"),
        params=AddParams,
        cost="element",
        meaning="sum or difference of two 8-bit tensors, which broadcast",
    )
)


def _factors(op: OpSignature) -> tuple[float, float, float]:
    """Return the real multipliers of inputs and output (docs/numerics.md, Real multipliers)."""
    x1, x2 = data_inputs(op)
    twice = f32(2.0 * max(x1.scale, x2.scale))
    return x1.scale / twice, x2.scale / twice, twice / f32((1 << _HEAD_ROOM) * op.outputs[0].scale)


@limit("the output scale must exceed the larger input scale / 2^19 (INT16: 2^14, or be one LiteRT shifts to)")
def output_not_too_fine(op: OpSignature, target: Target) -> Verdict:
    if is_wide(op):
        return wide_sum_fits(op)
    factor = _factors(op)[2]
    fits = factor < 1.0 and multiplier(factor)[1] <= 0
    return OK if fits else no(f"the factor to the output is {factor:g}", hint="calibrate on real data")


@serves(
    "ADD", "SUB", limits=(not_empty, two_inputs, one_activation_type, broadcasts, known_activation, output_not_too_fine)
)
def legalize(state: Legalizer) -> None:
    """Emit the kernel with the integer parameters of docs/numerics.md, Add, sub and mul."""
    if is_wide(state.signature):
        emit_add16(state)
        return
    op = state.signature
    x1, x2 = data_inputs(op)
    (m1, s1), (m2, s2), (mo, so) = (multiplier(factor) for factor in _factors(op))
    low, high = output_range(op)
    params = AddParams(
        zero1=x1.zero_point, multiplier1=m1, shift1=s1, zero2=x2.zero_point, multiplier2=m2, shift2=s2,
        subtract=int(op.code == "SUB"), output_multiplier=mo, output_shift=so, output_zero=op.outputs[0].zero_point,
        clamp_low=low, clamp_high=high,
    )  # fmt: skip
    emit_binary(state, ABI.name, params, Rounding.DOUBLE)
