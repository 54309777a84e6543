"""SQUARED_DIFFERENCE with broadcasting."""

from __future__ import annotations

from dataclasses import dataclass

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import int8_activations, not_empty, range_of
from openneutron.compiler.kernels.elementwise import broadcasts, data_inputs, emit_binary, one_byte_type, two_inputs
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.numbers.multipliers import f32, multiplier
from openneutron.compiler.signature import OpSignature
from openneutron.machine.targets import Target
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.microcode.table import Rounding
from openneutron.verdict import OK, Verdict, limit, no

_HEAD_ROOM = 7  # bits by which inputs are shifted up before rescaling, as in the reference


@dataclass(frozen=True)
class SquaredDifferenceParams:
    """Parameters of a `squared_difference` call."""

    zero1: int = param("zero point of the first input")
    multiplier1: int = param("brings the first input to the common scale")
    shift1: int = param("power of two that goes with it, at most 0")
    zero2: int = param("zero point of the second input")
    multiplier2: int = param("brings the second input to the common scale")
    shift2: int = param("power of two that goes with it, at most 0")
    output_multiplier: int = param("brings the square to the output's scale")
    output_shift: int = param("power of two that goes with it, at most 0")
    output_zero: int = param("added last")
    clamp_low: int = param("smallest output")
    clamp_high: int = param("largest output")


ABI = register(
    KernelAbi(
        id=22,
        name="squared_difference",
        abi=1,
        operands=("input1", "input2", "output"),
        params=SquaredDifferenceParams,
        cost="element",
        meaning="square of the difference of two 8-bit tensors, which broadcast",
    )
)


def _factors(op: OpSignature) -> tuple[float, float, float]:
    """Return the real multipliers of inputs and output (docs/numerics.md, PReLU and squared difference)."""
    x1, x2 = data_inputs(op)
    twice = f32(2.0 * max(x1.scale, x2.scale))
    return x1.scale / twice, x2.scale / twice, twice * twice / ((1 << (2 * _HEAD_ROOM)) * op.outputs[0].scale)


@limit("the output scale must exceed (2 times the larger input scale)^2 / 2^14")
def output_not_too_fine(op: OpSignature, target: Target) -> Verdict:
    factor = _factors(op)[2]
    fits = factor < 1.0 and multiplier(factor)[1] <= 0
    return OK if fits else no(f"the factor to the output is {factor:g}", hint="calibrate on real data")


@serves(
    "SQUARED_DIFFERENCE",
    limits=(not_empty, two_inputs, int8_activations, one_byte_type, broadcasts, output_not_too_fine),
)
def legalize(state: Legalizer) -> None:
    """Emit the kernel with the integer parameters of docs/numerics.md, PReLU and squared difference."""
    op = state.signature
    x1, x2 = data_inputs(op)
    (m1, s1), (m2, s2), (mo, so) = (multiplier(factor) for factor in _factors(op))
    y = op.outputs[0]
    low, high = range_of(y.dtype)
    params = SquaredDifferenceParams(x1.zero_point, m1, s1, x2.zero_point, m2, s2, mo, so, y.zero_point, low, high)
    emit_binary(state, ABI.name, params, Rounding.DOUBLE)
