"""PRELU: a slope per element, channel or tensor for negative inputs."""

from __future__ import annotations

import numpy as np

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import not_empty, range_of
from openneutron.compiler.kernels.elementwise import (
    broadcasts,
    data_inputs,
    emit_binary,
    one_byte_type,
    rescale_fits,
    same_shape,
    two_inputs,
)
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.numbers.multipliers import MAX_LEFT_SHIFT, multiplier
from openneutron.compiler.signature import OpSignature
from openneutron.machine.targets import Target
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.microcode.table import Rounding
from openneutron.records import dataclass
from openneutron.verdict import OK, Verdict, limit, no


@dataclass(frozen=True)
class PreluParams:
    """Parameters of a `prelu` call."""

    input_zero: int = param("zero point of the input")
    slope_zero: int = param("zero point of the slopes")
    multiplier: int = param("brings positive inputs to the output's scale")
    shift: int = param("power of two that goes with it")
    slope_multiplier: int = param("brings products with the slope to the output's scale")
    slope_shift: int = param("power of two that goes with it")
    output_zero: int = param("added last")
    clamp_low: int = param("smallest output")
    clamp_high: int = param("largest output")


ABI = register(
    KernelAbi(
        id=21,
        name="prelu",
        abi=1,
        operands=("input", "slope", "output"),
        params=PreluParams,
        cost="element",
        meaning="negative inputs times a slope that broadcasts, positive inputs rescaled",
    )
)


def _slope_factor(op: OpSignature) -> float:
    """Product and quotient in float32 (docs/numerics.md, PReLU and squared difference)."""
    x, slope = data_inputs(op)
    return float(np.float32(x.scale) * np.float32(slope.scale) / np.float32(op.outputs[0].scale))


@limit("input scale times slope scale over output scale must stay below 2^30")
def slope_fits(op: OpSignature, target: Target) -> Verdict:
    factor = _slope_factor(op)
    fits = factor < float("inf") and multiplier(factor)[1] <= MAX_LEFT_SHIFT
    return OK if fits else no(f"it is {factor:g}", hint="calibrate on real data")


@serves("PRELU", limits=(not_empty, two_inputs, one_byte_type, same_shape, broadcasts, rescale_fits, slope_fits))
def legalize(state: Legalizer) -> None:
    """Integer parameters as in docs/numerics.md, PReLU and squared difference."""
    op = state.signature
    x, slope = data_inputs(op)
    y = op.outputs[0]
    m, shift = multiplier(float(np.float32(x.scale) / np.float32(y.scale)))
    slope_m, slope_shift = multiplier(_slope_factor(op))
    low, high = range_of(y.dtype)
    params = PreluParams(x.zero_point, slope.zero_point, m, shift, slope_m, slope_shift, y.zero_point, low, high)
    emit_binary(state, ABI.name, params, Rounding.DOUBLE)
