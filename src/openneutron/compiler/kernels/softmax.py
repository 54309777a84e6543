"""SOFTMAX over the last axis: exponentials from a table of 256, their sum and reciprocal in fixed point."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import is_wide, not_empty, require_input, same_activations, value_range
from openneutron.compiler.kernels.softmax16 import emit_softmax16, wide_softmax_fits
from openneutron.compiler.l1 import Node, RowDemand
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.numbers.multipliers import multiplier
from openneutron.compiler.signature import OpSignature
from openneutron.litert.graph import DType
from openneutron.machine.targets import Target
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.verdict import OK, Verdict, limit, no

_INPUT_BITS = 26  # fraction bits of the scaled difference, Q5.26 (docs/numerics.md, Softmax)
_INTEGER_BITS = 5
# exp(-2^k / 4) in Q0.31 for k = 0 … 6: the factors of the exponential's integer part (docs/numerics.md, Softmax).
_EXP_FACTORS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
_EXP_MINUS_EIGHTH = 1895147668  # exp(-1/8) in Q0.31
_ONE_THIRD = 715827883  # in Q0.31
_SCALE_TOLERANCE = 0.001  # LiteRT's own bound on the output scale, relative


@dataclass(frozen=True)
class SoftmaxParams:
    """Parameters of a `softmax` call."""

    output_zero: int = param("added to the probability in 1/256")
    clamp_low: int = param("smallest output")
    clamp_high: int = param("largest output")


ABI = register(
    KernelAbi(
        id=7,
        name="softmax",
        abi=1,
        operands=("input", "table", "lut?", "output"),
        params=SoftmaxParams,
        cost="softmax",
        meaning="softmax over the channels; table[d] is exp(-d * scale) in Q0.31, 256 INT32, 0 where it does not count",
    )
)


def _high_product(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64] | int) -> npt.NDArray[np.int64]:
    return (a * b + (1 << 30)) >> 31


def _rounding_shift(x: npt.NDArray[np.int64], bits: int) -> npt.NDArray[np.int64]:
    return (x + (1 << (bits - 1)) - (x < 0)) >> bits


def _exponential(a: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """exp(a) in Q0.31 of Q5.26 numbers a ≤ 0: a polynomial on [-1/4, 0), then one factor per bit of the rest."""
    quarter = 1 << (_INPUT_BITS - 2)
    fraction = (a & (quarter - 1)) - quarter
    x = (fraction << _INTEGER_BITS) + (1 << 28)
    x2 = _high_product(x, x)
    x3, x4 = _high_product(x2, x), _high_product(x2, x2)
    y = _rounding_shift(_high_product(_rounding_shift(x4, 2) + x3, _ONE_THIRD) + x2, 1)
    result = _EXP_MINUS_EIGHTH + _high_product(x + y, _EXP_MINUS_EIGHTH)
    rest = fraction - a
    for bit, factor in enumerate(_EXP_FACTORS, start=_INPUT_BITS - 2):
        result = np.where(rest >> bit & 1, _high_product(result, factor), result)
    return np.where(a == 0, (1 << 31) - 1, result)


def exponential_table(beta: float, scale: float) -> npt.NDArray[np.uint8]:
    """exp(-d * beta * scale) for d = 0 … 255 as little-endian INT32; entries the reference leaves out are 0."""
    m, shift = multiplier(_input_factor(beta, scale))
    left, right = max(shift, 0), max(-shift, 0)
    largest = (((1 << _INTEGER_BITS) - 1) << _INPUT_BITS) >> left
    d = np.arange(256, dtype=np.int64)
    counted = np.minimum(d, largest)
    scaled = _high_product(-(counted << left), m)
    # A right shift is for inputs so fine that the reference aborts: their exponentials are all but 1.
    exponentials = _exponential(_rounding_shift(scaled, right) if right else scaled)
    table = np.where(d <= largest, exponentials, 0).astype("<i4")
    return np.frombuffer(table.tobytes(), np.uint8)


def _input_factor(beta: float, scale: float) -> float:
    return min(beta * scale * (1 << _INPUT_BITS), float((1 << 31) - 1))


@limit("input and output must have the same shape")
def shapes_equal(op: OpSignature, target: Target) -> Verdict:
    x, y = require_input(op, 0), op.outputs[0]
    if not x.shape or x.shape != y.shape:
        return no(f"input {list(x.shape)}, output {list(y.shape)}")
    return OK


@limit("output must have scale 1/256 and zero point -128 (UINT8: 0; INT16: scale 1/32768, zero point 0)")
def output_is_probability(op: OpSignature, target: Target) -> Verdict:
    if is_wide(op):
        return wide_softmax_fits(op)
    y = op.outputs[0]
    zero = 0 if y.dtype is DType.UINT8 else -128
    if y.zero_point != zero or abs(y.scale - 1 / 256) > _SCALE_TOLERANCE / 256:
        return no(f"scale is {y.scale:.6g}, zero point {y.zero_point}", hint="fix the output's quantization")
    return OK


@limit("beta must be a positive number")
def beta_positive(op: OpSignature, target: Target) -> Verdict:
    if op.options is None:
        return no("the operator has no options", hint="the file is incomplete: convert the model again")
    beta = float(op.options.beta)
    return OK if 0 < beta < math.inf else no(f"it is {beta:g}", hint="convert the model again")


@serves(
    "SOFTMAX",
    limits=(not_empty, same_activations, shapes_equal, beta_positive, output_is_probability),
)
def legalize(state: Legalizer) -> None:
    """Return integer parameters (docs/numerics.md, Softmax), also for inputs on which the reference aborts."""
    if is_wide(state.signature):
        emit_softmax16(state)
        return
    x, y = require_input(state.signature, 0), state.signature.outputs[0]
    low, high = value_range(y)
    state.emit(
        Node(
            kernel=ABI.name,
            operands=[state.value(0), exponential_table(state.op.options.beta, x.scale), None, state.output()],
            output=state.output(),
            params=SoftmaxParams(y.zero_point, low, high),
            demand={0: RowDemand()},
            in_place=(0,),
        )
    )
