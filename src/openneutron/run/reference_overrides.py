"""Compute operators whose LiteRT reference kernel has no defined result, as docs/numerics.md defines them.

The reference kernel of SOFTMAX ends the process when 512 or more values are nearly equal; that of DIV shifts small quotients
by 32 bits and more. LiteRT computes everything else.

Example:
    >>> override = find_override(graph, graph.operators[0])
    >>> outputs = None if override is None else override.compute(graph, graph.operators[0], values)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.compiler.numbers.multipliers import activation_range, multiplier
from openneutron.litert.graph import DType, Graph, Operator, Tensor

Array = npt.NDArray[Any]
Wide = npt.NDArray[np.int64]

_BYTES = (DType.INT8, DType.UINT8)
_SOFTMAX_ABORTS = 512  # sum of exponentials, each at most 1, from which the reference kernel's shift leaves its range
_DIFFERENCE_BITS = 26  # SOFTMAX scales differences to Q5.26
_SUM_BITS = 12  # and adds exponentials up in Q12.19


@dataclass(frozen=True)
class Override:
    """A replacement for LiteRT's reference kernel of an operator, and why it is needed."""

    compute: Callable[[Graph, Operator, Mapping[int, Array]], Array]
    why: str
    undefined: Callable[[Graph, Operator, Mapping[int, Array]], Array]
    """Where the reference kernel has no defined value for these inputs: True for each such element of the output."""
    harmless: Callable[[Graph, Operator, Mapping[int, Array], Array], dict[int, Array]]
    """The inputs with what makes the kernel abort replaced, so that its other elements can be taken from it."""


def find_override(graph: Graph, op: Operator) -> Override | None:
    """Return the override of this operator; None when LiteRT's kernel defines its result."""
    known = _KNOWN.get(op.code)
    if known is None or len(op.outputs) != 1 or len(op.inputs) != known.inputs or min(op.inputs) < 0:
        return None
    x, y = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    if x.dtype not in _BYTES or y.dtype is not x.dtype or not x.shape or not (_per_tensor(x) and _per_tensor(y)):
        return None
    return known.override if known.applies(graph, op) else None


def _per_tensor(tensor: Tensor) -> bool:
    return tensor.quantization is not None and len(tensor.quantization.scale) == 1


def _may_abort(graph: Graph, op: Operator) -> bool:
    """Whether a softmax is so deep, or its input so fine, that the reference kernel ends the process."""
    beta = float(op.options.beta) if op.options is not None else 0.0
    flat = 0 < beta * _parameters(graph, op.inputs[0])[0] * (1 << _DIFFERENCE_BITS) <= 1
    return flat or graph.tensors[op.inputs[0]].shape[-1] >= _SOFTMAX_ABORTS


def _shifts_too_far(graph: Graph, op: Operator) -> bool:
    """Whether dividing by this constant makes the reference kernel shift past the 31 bits that it can."""
    x, divisor = (graph.tensors[t] for t in op.inputs)
    if divisor.data is None or divisor.dtype is not x.dtype or not _per_tensor(divisor) or divisor.data.size == 0:
        return False
    b = np.abs(divisor.data.astype(np.int64) - _parameters(graph, op.inputs[1])[1])
    _, shift = multiplier(_quotient_factor(graph, op))
    # A dividend of 0 has the most leading sign bits.
    return bool(b.min() > 0) and int(np.frexp(b.max())[1]) - 1 + 31 - shift > 31


def _parameters(graph: Graph, tensor: int) -> tuple[float, int]:
    quantization = graph.tensors[tensor].quantization
    assert quantization is not None
    return quantization.scalar


def _saturate(graph: Graph, op: Operator, values: Wide) -> Array:
    y = graph.tensors[op.outputs[0]]
    limits = np.iinfo(y.dtype.numpy)
    return np.clip(values, limits.min, limits.max).astype(y.dtype.numpy).reshape(y.shape)


def _softmax(graph: Graph, op: Operator, values: Mapping[int, Array]) -> Array:
    """Fixed point as the reference kernel's; where that one would end the process the probabilities round to 0."""
    _, out_zero = _parameters(graph, op.outputs[0])
    power = _powers(graph, op, values)
    total = np.clip(_round_shift(power, _SUM_BITS).sum(axis=-1, keepdims=True), 1, (1 << 31) - 1)
    inverse, bits = _reciprocal(total)
    return _saturate(graph, op, _round_shift(_high(inverse, power), bits + 31 - 8) + out_zero)


def _powers(graph: Graph, op: Operator, values: Mapping[int, Array]) -> Wide:
    """exp(x - max) of each element in Q0.31."""
    scale, _ = _parameters(graph, op.inputs[0])
    beta = float(op.options.beta) if op.options is not None else 0.0
    m, shift = multiplier(min(beta * scale * (1 << _DIFFERENCE_BITS), float((1 << 31) - 1)))
    left = max(shift, 0)
    x = values[op.inputs[0]].astype(np.int64)
    difference = x - x.max(axis=-1, keepdims=True)
    counted = difference >= -math.floor(31 * (1 << _DIFFERENCE_BITS) / (1 << left))
    scaled = _round_shift(_high(np.where(counted, difference, 0) << left, m), max(-shift, 0))
    powers: Wide = np.where(counted, _exponential(scaled), 0)
    return powers


def _divide(graph: Graph, op: Operator, values: Mapping[int, Array]) -> Array:
    """x times the reciprocal of the divisor, in fixed point; quotients shifted out altogether are 0."""
    m, shift = multiplier(_quotient_factor(graph, op))
    a, b = (values[t].astype(np.int64) - _parameters(graph, t)[1] for t in op.inputs)
    a, b = np.broadcast_arrays(np.where(b < 0, -a, a), np.abs(b))
    bits = np.frexp(b)[1].astype(np.int64) - 1
    spare = 31 - np.frexp(np.where(a < 0, -a - 1, a))[1].astype(np.int64)
    inverse, _ = _reciprocal(b)
    quotient = _high(_high(a << spare, inverse), m)
    scale, zero = _parameters(graph, op.outputs[0])
    activation = op.options.fusedActivationFunction if op.options is not None else 0
    y = graph.tensors[op.outputs[0]]
    limits = np.iinfo(y.dtype.numpy)
    low, high = activation_range(activation, scale, zero, (int(limits.min), int(limits.max)))
    return (
        np.clip(_round_shift(quotient, bits + spare - shift) + zero, low, high).astype(y.dtype.numpy).reshape(y.shape)
    )


def _quotient_factor(graph: Graph, op: Operator) -> float:
    x, divisor, y = (np.float32(_parameters(graph, t)[0]) for t in (*op.inputs, *op.outputs))
    return float(x / (divisor * y))


def _aborting_rows(graph: Graph, op: Operator, values: Mapping[int, Array]) -> Array:
    """Return True for each row of a softmax on which the reference kernel ends the process."""
    beta = float(op.options.beta) if op.options is not None else 0.0
    shape = graph.tensors[op.outputs[0]].shape
    if beta * _parameters(graph, op.inputs[0])[0] * (1 << _DIFFERENCE_BITS) <= 1:
        return np.ones(shape, bool)
    power = _powers(graph, op, values)
    total = _round_shift(power, _SUM_BITS).sum(axis=-1, keepdims=True)
    return np.broadcast_to(total >= _SOFTMAX_ABORTS << (31 - _SUM_BITS), shape)


def _steep(graph: Graph, op: Operator, values: Mapping[int, Array], undefined: Array) -> dict[int, Array]:
    """Return the inputs with one value raised far above the others in each row that would abort the kernel."""
    x = np.array(values[op.inputs[0]])
    limits = np.iinfo(x.dtype)
    row = np.full(x.shape[-1], limits.min, x.dtype)
    row[0] = limits.max
    x[undefined[..., 0]] = row
    return {**values, op.inputs[0]: x}


def _shifted_out(graph: Graph, op: Operator, values: Mapping[int, Array]) -> Array:
    """Return True for each quotient that the reference kernel shifts by 32 bits and more."""
    _, shift = multiplier(_quotient_factor(graph, op))
    a, b = (values[t].astype(np.int64) - _parameters(graph, t)[1] for t in op.inputs)
    a, b = np.broadcast_arrays(np.where(b < 0, -a, a), np.abs(b))
    bits = np.frexp(b)[1].astype(np.int64) - 1
    spare = 31 - np.frexp(np.where(a < 0, -a - 1, a))[1].astype(np.int64)
    return (bits + spare - shift > 31).reshape(graph.tensors[op.outputs[0]].shape)


def _as_given(graph: Graph, op: Operator, values: Mapping[int, Array], undefined: Array) -> dict[int, Array]:
    return dict(values)


_SOFTMAX = Override(
    _softmax,
    "LiteRT's reference kernel aborts on a deep or flat SOFTMAX when all values are nearly equal",
    _aborting_rows,
    _steep,
)
_DIV = Override(
    _divide,
    "LiteRT's reference kernel of DIV shifts small quotients by 32 bits and more",
    _shifted_out,
    _as_given,
)


@dataclass(frozen=True)
class _Known:
    """An override, the number of inputs of its operator, and the condition under which it applies."""

    override: Override
    inputs: int
    applies: Callable[[Graph, Operator], bool]


_KNOWN = {
    "SOFTMAX": _Known(_SOFTMAX, 1, _may_abort),
    "DIV": _Known(_DIV, 2, _shifts_too_far),
}


def _high(a: Wide, b: Wide | int) -> Wide:
    """Upper half of a doubled 32-bit product, rounded."""
    return (a * b + (1 << 30)) >> 31


def _round_shift(x: Wide, bits: int | Wide) -> Wide:
    """Right shift, halves away from zero; 0 bits and more than 31 are allowed."""
    amount = np.minimum(np.asarray(bits, np.int64), 62)
    half = np.where(amount > 0, np.int64(1) << np.maximum(amount - 1, 0), 0)
    return (x + half - ((x < 0) & (amount > 0))) >> amount


def _exponential(a: Wide) -> Wide:
    """exp(a) in Q0.31 of a ≤ 0 in Q5.26, as gemmlowp computes it."""
    quarter = 1 << (_DIFFERENCE_BITS - 2)
    rest = (a & (quarter - 1)) - quarter
    x = (rest << 5) + (1 << 28)
    square = _high(x, x)
    series = _round_shift(_high(_round_shift(_high(square, square), 2) + _high(square, x), 715827883) + square, 1)
    result = 1895147668 + _high(x + series, 1895147668)
    for bit, factor in enumerate((1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)):
        result = np.where(((rest - a) >> (_DIFFERENCE_BITS - 2 + bit)) & 1, _high(result, factor), result)
    return np.where(a == 0, (1 << 31) - 1, result)


def _reciprocal(total: Wide) -> tuple[Wide, Wide]:
    """(1 / x in Q0.31, bits) with x the total, in Q12.19, brought to 1 ≤ x < 2 by shifting it `bits` to the right."""
    zeros = 32 - np.frexp(total.astype(np.float64))[1].astype(np.int64)
    half = (total << zeros) >> 1
    x = 1515870810 + _high(half, -1010580540)
    for _ in range(3):
        x = x + _saturating_double(_high(x, (1 << 29) - _high(half, x)), 2)
    return _saturating_double(x, 1), _SUM_BITS - zeros


def _saturating_double(x: Wide, times: int) -> Wide:
    saturated: Wide = np.clip(x << times, -(1 << 31), (1 << 31) - 1)
    return saturated
