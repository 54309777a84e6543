"""`lut16`: LOGISTIC and TANH of 16-bit activations, by interpolation in one table of the logistic function."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from openneutron.compiler.kernels.elementwise import emit_unary
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.signature import OpSignature
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.verdict import OK, Verdict, no

ENTRIES = 256
_STEPS = 24  # entries per unit of the logistic function's argument
_UNIT = 12288  # 3 * 2^12: steps of the table's argument, with nine fraction bits, per unit
_MOST = 65535  # multiplier: its product with 16 bits stays in INT32
_ONE = 1.0 / 32768.0


@dataclass(frozen=True)
class Lut16Params:
    """Parameters of a `lut16` call."""

    tangent: int = param("0: logistic function, 1: hyperbolic tangent")
    multiplier: int = param("brings inputs to the table's steps", least=4)
    shift: int = param("right shift that goes with it, halves up")


ABI = register(
    KernelAbi(
        id=47,
        name="lut16",
        abi=1,
        operands=("input", "table", "output"),
        params=Lut16Params,
        cost="element",
        meaning="logistic function or tangent of 16 bits; the table is the logistic function at n/24, 256 UINT16 in 0.16",
    )
)


@cache
def logistic_table() -> npt.NDArray[np.uint8]:
    """The function at multiples of 1/24, raised by half of what a chord there falls short of the curve.

    Example:
        >>> logistic_table().view("<u2")[:3].tolist()
        [32768, 33451, 34133]
    """
    entries = []
    for at in range(ENTRIES - 1):
        s = 1.0 / (1.0 + math.exp(-at / _STEPS))
        bend = s * (1.0 - s) * (2.0 * s - 1.0)  # minus the second derivative; a chord of width h errs by h^2/8 of it
        entries.append(math.floor(65536.0 * (s + bend / _STEPS**2 / 16.0) + 0.5))
    return np.asarray([*entries, 65535], "<u2").view(np.uint8)  # from there on it is 1


def _input_factor(scale: float, exact_shifts: tuple[int, ...]) -> tuple[int, int]:
    """Multiplier and shift as LiteRT derives them; scales 2^-12 (and 2^-11) are taken without rounding."""
    exponent = math.log2(scale)
    left = 12 + round(exponent)
    if exponent == round(exponent) and left in exact_shifts:
        return 3 << left, 0
    factor, shift = scale * _UNIT, 0
    while factor <= 32767.0 / 2.0 and shift <= 30:
        factor, shift = factor * 2.0, shift + 1
    return int(factor), shift


def wide_function_fits(op: OpSignature) -> Verdict:
    """Can LOGISTIC or TANH of 16 bits be computed between these scales?"""
    x, y = op.inputs[0], op.outputs[0]
    assert x is not None
    if y.scale != _ONE:
        return no(f"the output scale is {y.scale:g}, LiteRT demands 2^-15", hint="fix the output's quantization")
    if x.scale * _UNIT > _MOST:
        return no(f"the input scale is {x.scale:g}, above {_MOST / _UNIT:.3g}", hint="calibrate on real data")
    return OK


def emit_lut16(state: Legalizer) -> None:
    """Emit the current LOGISTIC or TANH (docs/numerics.md, 16-bit activations)."""
    tangent = state.signature.code == "TANH"
    x = state.signature.inputs[0]
    assert x is not None
    multiplier, shift = _input_factor(x.scale, (0, 1) if tangent else (0,))
    emit_unary(state, ABI.name, [logistic_table()], Lut16Params(int(tangent), multiplier, shift))
