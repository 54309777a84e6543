"""PRELU: a slope per element, channel or tensor for negative inputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import not_empty, range_of
from openneutron.compiler.kernels.elementwise import (
    broadcasts,
    data_inputs,
    emit_binary,
    one_byte_type,
    rescale_fits,
    reshape,
    same_shape,
    two_inputs,
)
from openneutron.compiler.l1 import Node, RowDemand, Value
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.numbers.multipliers import MAX_LEFT_SHIFT, multiplier
from openneutron.compiler.signature import OpSignature
from openneutron.machine.targets import Target
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.microcode.table import ElementType, Rounding
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


def emit_leaky_relu16(state: Legalizer, alpha: float) -> None:
    """Emit 16-bit LEAKY_RELU with a constant slope of 1 or -1 whose scale is the magnitude of alpha."""
    x, y = state.signature.inputs[0], state.signature.outputs[0]
    assert x is not None
    m, shift = multiplier(float(np.float32(x.scale) / np.float32(y.scale)))
    factor = float(np.float32(x.scale) * np.float32(abs(alpha)) / np.float32(y.scale))
    slope_m, slope_shift = multiplier(factor)
    sign = np.full((1, 1, 1, 1), -1 if alpha < 0 else 1, np.int16)
    slope = state.graph.add_value(Value(f"{y.name} slope", (1, 1, 1, 1), ElementType.INT16, 1.0, 0, data=sign))
    output = state.output()
    source = reshape(state, state.value(0), state.graph.values[output].shape)
    low, high = range_of(y.dtype)
    streams = state.graph.values[source].data is None
    state.emit(
        Node(
            kernel=ABI.name,
            operands=[source, slope, output],
            output=output,
            params=PreluParams(0, 0, m, shift, slope_m, slope_shift, 0, low, high),
            rounding=Rounding.DOUBLE,
            demand={0: RowDemand()} if streams else {},
            in_place=(0,) if streams else (),
        )
    )


@serves("PRELU", limits=(not_empty, two_inputs, one_byte_type, same_shape, broadcasts, rescale_fits, slope_fits))
def legalize(state: Legalizer) -> None:
    """Emit the kernel with the integer parameters of docs/numerics.md, PReLU and squared difference."""
    op = state.signature
    x, slope = data_inputs(op)
    y = op.outputs[0]
    m, shift = multiplier(float(np.float32(x.scale) / np.float32(y.scale)))
    slope_m, slope_shift = multiplier(_slope_factor(op))
    low, high = range_of(y.dtype)
    params = PreluParams(x.zero_point, slope.zero_point, m, shift, slope_m, slope_shift, y.zero_point, low, high)
    emit_binary(state, ABI.name, params, Rounding.DOUBLE)
