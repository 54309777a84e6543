"""`softmax16`: SOFTMAX of 16-bit activations, exponentials and the reciprocal of their sum from two tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from openneutron.compiler.kernels.common import require_input
from openneutron.compiler.l1 import Node, RowDemand
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.numbers.multipliers import f32, multiplier, round_half_away
from openneutron.compiler.signature import OpSignature
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.verdict import OK, Verdict, no

_RANGE = 65535  # steps of 16 bits
_REACH = 10.0  # exp(-10) and below count as the table's first entry
_STEPS = 512
_MOST_SHIFT = 14  # a difference of 17 bits, shifted left, stays in INT32
_PROBABILITY = 1.0 / 32768.0
_SCALE_TOLERANCE = 0.001  # LiteRT's own bound on the output scale, relative


@dataclass(frozen=True)
class Softmax16Params:
    """Parameters of a `softmax16` call."""

    multiplier: int = param("brings differences of inputs to 65535 steps for 10")
    shift: int = param("power of two that goes with it")


ABI = register(
    KernelAbi(
        id=45,
        name="softmax16",
        abi=1,
        operands=("input", "table", "output"),
        params=Softmax16Params,
        cost="softmax",
        meaning="softmax of 16 bits over the channels; tables of exp on [-10, 0] and of 1/(1+x) on [0, 1], 513 INT16 each",
    )
)


def _table(function: Callable[[float], float], low: float, high: float) -> list[int]:
    """513 values in 1/32768, each moved by half of what the line to the next one misses in the middle."""
    step = (high - low) / _STEPS

    def at(x: float) -> float:
        return function(x) * 32768.0

    entries = []
    for i in range(_STEPS):
        here, there = round_half_away(at(low + i * step)), at(low + (i + 1) * step)
        line = round_half_away((there + here) / 2.0)
        missed = line - round_half_away(at(low + i * step + step / 2.0))
        entries.append(here - round_half_away(missed / 2.0))
    return [min(max(entry, -32768), 32767) for entry in (*entries, round_half_away(at(high)))]


@cache
def softmax_tables() -> npt.NDArray[np.uint8]:
    """Return both tables, one after the other."""
    tables = _table(math.exp, -_REACH, 0.0) + _table(lambda x: 1.0 / (1.0 + x), 0.0, 1.0)
    return np.asarray(tables, "<i2").view(np.uint8)


def _factor(beta: float, scale: float) -> float:
    return f32(f32(scale) * f32(beta)) / (_REACH / _RANGE)


def wide_softmax_fits(op: OpSignature) -> Verdict:
    """Can SOFTMAX of 16 bits be computed between these scales?"""
    x, y = require_input(op, 0), op.outputs[0]
    if abs(y.scale - _PROBABILITY) > _SCALE_TOLERANCE * _PROBABILITY:
        return no(f"the output scale is {y.scale:.6g}, LiteRT demands 2^-15", hint="fix the output's quantization")
    if multiplier(_factor(float(op.options.beta), x.scale))[1] > _MOST_SHIFT:
        return no(f"the input scale is {x.scale:g}", hint="calibrate on real data")
    return OK


def emit_softmax16(state: Legalizer) -> None:
    """Emit the current SOFTMAX (docs/numerics.md, 16-bit activations)."""
    x = require_input(state.signature, 0)
    m, shift = multiplier(_factor(float(state.op.options.beta), x.scale))
    state.emit(
        Node(
            kernel=ABI.name,
            operands=[state.value(0), softmax_tables(), state.output()],
            output=state.output(),
            params=Softmax16Params(m, shift),
            demand={0: RowDemand()},
            in_place=(0,),
        )
    )
