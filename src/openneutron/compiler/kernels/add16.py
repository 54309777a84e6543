"""`add16`: ADD and SUB of 16-bit activations with broadcasting and fused activation."""

from __future__ import annotations

import math
from dataclasses import dataclass

from openneutron.compiler.kernels.elementwise import data_inputs, emit_binary, output_range
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.numbers.multipliers import multiplier
from openneutron.compiler.signature import OpSignature
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.microcode.table import Rounding
from openneutron.verdict import OK, Verdict, no

_HEAD_ROOM = 15  # bits by which inputs are shifted up before rescaling, as in the reference


@dataclass(frozen=True)
class Add16Params:
    """Parameters of an `add16` call."""

    shifts_only: int = param("1: inputs are only shifted right, by -shift1 and -shift2, and the sum is not rescaled")
    multiplier1: int = param("brings the first input to the common scale")
    shift1: int = param("power of two that goes with it, at most 0")
    multiplier2: int = param("brings the second input to the common scale")
    shift2: int = param("power of two that goes with it, at most 0")
    subtract: int = param("1: the second input is subtracted")
    output_multiplier: int = param("brings the sum to the output's scale")
    output_shift: int = param("power of two that goes with it, at most 0")
    clamp_low: int = param("smallest output")
    clamp_high: int = param("largest output")


ABI = register(
    KernelAbi(
        id=46,
        name="add16",
        abi=1,
        operands=("input1", "input2", "output"),
        params=Add16Params,
        cost="element",
        meaning="sum or difference of two 16-bit tensors, which broadcast",
    )
)


def _factors(op: OpSignature) -> tuple[float, float, float]:
    """Return the real multipliers of inputs and output, in double (docs/numerics.md, 16-bit activations)."""
    x1, x2 = data_inputs(op)
    twice = 2.0 * max(x1.scale, x2.scale)
    return x1.scale / twice, x2.scale / twice, twice / ((1 << _HEAD_ROOM) * op.outputs[0].scale)


def _shifts(op: OpSignature) -> tuple[int, int] | None:
    """Return shifts from the inputs' scales to the output's where LiteRT uses them: if all scales are powers of two."""
    scales = [tensor.scale for tensor in (*data_inputs(op), op.outputs[0])]
    if not getattr(op.options, "potScaleInt16", True) or any(math.frexp(scale)[0] != 0.5 for scale in scales):
        return None
    first, second, output = (math.frexp(scale)[1] for scale in scales)
    return first - output, second - output


def wide_sum_fits(op: OpSignature) -> Verdict:
    """Does LiteRT add these scales?"""
    shifts = _shifts(op)
    if shifts is not None:
        if max(shifts) > 0 or 0 not in shifts or min(shifts) < -15:
            hint = "say pot_scale_int16 false, or give one input the output's scale and the other a finer one"
            return no("LiteRT adds scales that are powers of two by shifting one input", hint=hint)
        return OK
    factor = _factors(op)[2]
    fits = factor < 1.0 and multiplier(factor)[1] <= 0
    return OK if fits else no(f"the factor to the output is {factor:g}", hint="calibrate on real data")


def emit_add16(state: Legalizer) -> None:
    """Emit the current ADD or SUB (docs/numerics.md, 16-bit activations)."""
    op = state.signature
    low, high = output_range(op)
    subtract, shifts = int(op.code == "SUB"), _shifts(op)
    if shifts is not None:
        params = Add16Params(1, 0, shifts[0], 0, shifts[1], subtract, 0, 0, low, high)
    else:
        (m1, s1), (m2, s2), (mo, so) = (multiplier(factor) for factor in _factors(op))
        params = Add16Params(0, m1, s1, m2, s2, subtract, mo, so, low, high)
    emit_binary(state, ABI.name, params, Rounding.DOUBLE)
