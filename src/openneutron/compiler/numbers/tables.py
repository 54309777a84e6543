"""256-entry tables of 8-bit unary functions, bit-exact with LiteRT's reference kernels (docs/numerics.md, Tables).

LOGISTIC, TANH, ELU, GELU, EXP and LOG take every step in float32 and only the libm call in double; the others emulate the
reference's integer arithmetic. A table is indexed by the stored byte, whatever its sign.

Example:
    >>> table = float_table(tanh, Scaling(0.1, 0, 1 / 128, 0))
    >>> int(table.view(np.int8)[10])   # tanh(1.0) * 128
    97
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from openneutron.compiler.numbers.multipliers import multiplier

Table = npt.NDArray[np.uint8]
F32 = np.float32
_INT32_MIN, _INT32_MAX = -(1 << 31), (1 << 31) - 1


@dataclass(frozen=True)
class Scaling:
    """Scales (exactly float32) and zero points around a unary function; `signed` is INT8, else UINT8."""

    in_scale: float
    in_zero: int
    out_scale: float
    out_zero: int
    signed: bool = True

    @property
    def limits(self) -> tuple[int, int]:
        """Smallest and largest stored value."""
        return (-128, 127) if self.signed else (0, 255)


def table_of(function: Callable[[int], int], scaling: Scaling) -> Table:
    """A table from an integer function of the stored value; its results are clamped to the type."""
    low, high = scaling.limits
    table = np.zeros(256, np.uint8)
    for stored in range(low, high + 1):
        table[stored & 0xFF] = min(max(function(stored), low), high) & 0xFF
    return table


@lru_cache(64)  # the steps of an unrolled layer ask for the same ones again and again
def float_table(function: Callable[[np.float32], np.float32], scaling: Scaling) -> Table:
    """The table of a float32 function: scale in, evaluate, scale out, round half away, add the zero point."""
    scale = F32(scaling.in_scale)
    inverse = F32(1.0) / F32(scaling.out_scale)

    def entry(stored: int) -> int:
        with np.errstate(over="ignore", invalid="ignore"):
            product = F32(function(scale * F32(stored - scaling.in_zero)) * inverse)
            if math.isinf(product):
                return _INT32_MAX if product > 0 else _INT32_MIN
            rounded = F32(math.copysign(math.floor(abs(float(product)) + 0.5), float(product)))
            return int(rounded + F32(scaling.out_zero))

    table = table_of(entry, scaling)
    table.flags.writeable = False
    return table


def _libm(function: Callable[[float], float], x: np.float32) -> np.float32:
    """A libm function in double, rounded once to float32."""
    try:
        return F32(function(float(x)))
    except OverflowError:
        return F32(np.inf)


def logistic(x: np.float32) -> np.float32:
    """1 / (1 + e^-x)."""
    return F32(F32(1.0) / (F32(1.0) + _libm(math.exp, F32(-x))))


def tanh(x: np.float32) -> np.float32:
    """Hyperbolic tangent."""
    return _libm(math.tanh, x)


def exp(x: np.float32) -> np.float32:
    """e^x."""
    return _libm(math.exp, x)


def elu(x: np.float32) -> np.float32:
    """x, or e^x - 1 below zero."""
    return _libm(math.expm1, x) if x < 0 else x


def gelu(x: np.float32) -> np.float32:
    """x times the normal distribution function, through erfc."""
    return F32(F32(0.5) * x * _libm(math.erfc, F32(x * F32(-math.sqrt(0.5)))))


def gelu_tanh(x: np.float32) -> np.float32:
    """The tanh approximation of GELU."""
    inner = F32(math.sqrt(2.0 / math.pi)) * (x + F32(0.044715) * x * x * x)
    return F32(F32(0.5) * x * (F32(1.0) + _libm(math.tanh, inner)))


def log_to(scaling: Scaling) -> Callable[[np.float32], np.float32]:
    """Return the natural logarithm as a function; inputs without a logarithm give the smallest output."""
    least = F32(scaling.limits[0] - scaling.out_zero) * F32(scaling.out_scale)
    return lambda x: least if x <= 0 else _libm(math.log, x)


def mbqm(x: int, m: int, shift: int) -> int:
    """MultiplyByQuantizedMultiplier with double rounding, as the C of the same name."""
    return _rdp(_srdhm(_wrap(x << max(shift, 0)), m), max(-shift, 0))


def requantize_table(zero_in: int, m: int, shift: int, zero_out: int, clamp: tuple[int, int], *, signed: bool) -> Table:
    """Return the result of the `requantize` kernel for every stored byte; `signed` refers to the input."""
    table = np.zeros(256, np.uint8)
    for stored in range(-128, 128) if signed else range(256):
        rescaled = mbqm(stored - zero_in, m, shift) + zero_out
        table[stored & 0xFF] = min(max(rescaled, clamp[0]), clamp[1]) & 0xFF
    return table


def leaky_relu(scaling: Scaling, alpha: float) -> Table:
    """Return a table of two slopes, each with its own multiplier; a negative alpha is applied as its magnitude."""
    plain = multiplier(float(F32(scaling.in_scale) / F32(scaling.out_scale)))
    slope = float(F32(F32(scaling.in_scale) * F32(alpha)) / F32(scaling.out_scale))
    scaled = multiplier(abs(slope))
    sign = -1 if slope < 0 else 1

    def entry(stored: int) -> int:
        v = stored - scaling.in_zero
        return (mbqm(v, *plain) if v >= 0 else sign * mbqm(v, *scaled)) + scaling.out_zero

    return table_of(entry, scaling)


def absolute(scaling: Scaling) -> Table:
    """Return a table of the magnitude; with equal scales nothing is multiplied."""
    factor = multiplier(float(F32(scaling.in_scale) / F32(scaling.out_scale)))

    def entry(stored: int) -> int:
        v = abs(stored - scaling.in_zero)
        return (v if scaling.in_scale == scaling.out_scale else mbqm(v, *factor)) + scaling.out_zero

    return table_of(entry, scaling)


def square_root(scaling: Scaling) -> Table:
    """Return a table of the truncated square root, as the reference computes it.

    Inputs below zero, on which the reference fails, give the smallest output.
    """

    def entry(stored: int) -> int:
        v = stored - scaling.in_zero
        if v < 0:
            return scaling.limits[0]
        root = np.sqrt(F32(scaling.in_scale) * F32(v))
        return int(F32(root / F32(scaling.out_scale))) + scaling.out_zero

    return table_of(entry, scaling)


def inverse_root_factor(scaling: Scaling) -> tuple[int, int]:
    """Multiplier and shift behind the integer inverse square root; the shift must stay below 12 (docs/numerics.md)."""
    return multiplier(1.0 / float(np.sqrt(F32(scaling.in_scale)) * F32(scaling.out_scale)))


def inverse_square_root(scaling: Scaling) -> Table:
    """Return a table of 1/sqrt(x) by Newton's iteration in fixed point.

    1/sqrt(0) is the largest output, inputs below zero give the smallest.
    """
    m, shift = inverse_root_factor(scaling)

    def entry(stored: int) -> int:
        v = stored - scaling.in_zero
        if v <= 0:
            return scaling.limits[1] if v == 0 else scaling.limits[0]
        inverse, exponent = _inverse_root(v)
        return mbqm(mbqm(1, inverse, exponent + 20), m, shift - 20) + scaling.out_zero

    return table_of(entry, scaling)


def hard_swish_factors(scaling: Scaling) -> tuple[tuple[int, int], tuple[int, int]]:
    """(multiplier, exponent) of the output and of the inner ReLU; the first exponent must not exceed 0."""
    step = F32(1.0 / 128.0) * F32(scaling.in_scale)
    return multiplier(float(step / F32(scaling.out_scale))), multiplier(float(step / F32(3.0 / 32768.0)))


def hard_swish(scaling: Scaling) -> Table:
    """Return a table of x * relu6(x + 3) / 6, computed in 16-bit fixed point."""
    (out_m, out_exponent), (relu_m, relu_exponent) = hard_swish_factors(scaling)
    out_m, relu_m = _narrow(out_m), _narrow(relu_m)

    def entry(stored: int) -> int:
        wide = _wrap16((stored - scaling.in_zero) * 128)
        product = _srdhm16(wide, out_m)
        gate = wide
        if relu_exponent > 0:
            gate = _saturate16(gate << (relu_exponent - 1))
        gate = _srdhm16(gate, relu_m)
        if relu_exponent > 0:
            gate = _saturate16(gate << 1)
        if relu_exponent < 0:
            gate = _rdp16(gate, -relu_exponent)
        gate = _wrap16((gate + 32768) >> 1)
        both = gate * product
        scaled = abs(both) >> 15
        return _rdp16(-scaled if both < 0 else scaled, -out_exponent) + scaling.out_zero

    return table_of(entry, scaling)


def negate_table(scaling: Scaling) -> Table:
    """The stored value with its sign changed, which wraps at -128."""
    return table_of(lambda stored: _wrap8(-stored), scaling)


def requantized_in_float(scaling: Scaling) -> Table:
    """Return the table that CONCATENATION of UINT8 rescales a part with, in float32 (docs/numerics.md, Concatenation)."""
    factor = F32(scaling.in_scale) * F32(F32(1.0) / F32(scaling.out_scale))
    bias = F32(-scaling.in_zero) * factor

    def entry(stored: int) -> int:
        v = float(F32(F32(stored) * factor) + bias)
        return int(math.copysign(math.floor(abs(v) + 0.5), v)) + scaling.out_zero

    return table_of(entry, scaling)


def quotient_shift(a: int, b: int, shift: int) -> int:
    """The final right shift of a / b in DIV; beyond 31 the reference is undefined (docs/numerics.md, Division)."""
    magnitude = abs(b)
    a = -a if b < 0 else a
    return magnitude.bit_length() - 1 + _leading_sign_bits(a) - shift


def divide_table(scaling: Scaling, divisor: int, divisor_scale: float, clamp: tuple[int, int]) -> Table:
    """Return a table of DIV by one constant; `divisor` is the constant minus its zero point, and not 0."""
    m, shift = quotient_factor(scaling, divisor_scale)

    def entry(stored: int) -> int:
        a = stored - scaling.in_zero
        a = -a if divisor < 0 else a
        fraction = _srdhm(_wrap(a << _leading_sign_bits(a)), _reciprocal(abs(divisor)))
        quotient = _rdp(_srdhm(fraction, m), quotient_shift(stored - scaling.in_zero, divisor, shift))
        return min(max(quotient + scaling.out_zero, clamp[0]), clamp[1])

    return table_of(entry, scaling)


def quotient_factor(scaling: Scaling, divisor_scale: float) -> tuple[int, int]:
    """Multiplier and shift of DIV."""
    return multiplier(float(F32(scaling.in_scale) / F32(F32(divisor_scale) * F32(scaling.out_scale))))


def _wrap(x: int) -> int:
    return (x + (1 << 31)) % (1 << 32) - (1 << 31)


def _wrap16(x: int) -> int:
    return (x + (1 << 15)) % (1 << 16) - (1 << 15)


def _wrap8(x: int) -> int:
    return (x + 128) % 256 - 128


def _saturate(x: int) -> int:
    return min(max(x, _INT32_MIN), _INT32_MAX)


def _saturate16(x: int) -> int:
    return min(max(x, -(1 << 15)), (1 << 15) - 1)


def _srdhm(a: int, b: int) -> int:
    return _saturate((a * b + (1 << 30)) >> 31)


def _srdhm16(a: int, b: int) -> int:
    return _saturate16((a * b + (1 << 14)) >> 15)


def _rdp(x: int, e: int) -> int:
    mask = (1 << e) - 1
    return (x >> e) + ((x & mask) > (mask >> 1) + (x < 0))


def _rdp16(x: int, e: int) -> int:
    """Rounding shift of 16 bits; from 16 on the mask is all ones, which the reference computes with."""
    mask = (1 << e) - 1 if e < 16 else -1
    return (x >> e) + ((x & mask) > (mask >> 1) + (x < 0))


def _narrow(m: int) -> int:
    """A 31-bit multiplier rounded to 15 bits."""
    return 32767 if m >= _INT32_MAX - (1 << 15) else (m + (1 << 15)) >> 16


def _leading_sign_bits(x: int) -> int:
    """Bits below the sign that equal it, in 32 bits; 31 for 0 and -1."""
    return 31 - (x if x >= 0 else ~x).bit_length()


def _inverse_root(v: int) -> tuple[int, int]:
    """(mantissa, shift) of 1/sqrt(v) by Newton's iteration in Q3.28 (docs/numerics.md, Integer tables)."""
    if v <= 1:
        return _INT32_MAX, 0
    pairs = (_leading_sign_bits(v)) // 2 - 1
    v <<= 2 * pairs
    shift = 11 - pairs
    half = _rdp(v >> 1, 1)
    x = 1 << 28
    for _ in range(5):
        cube = _saturate(_srdhm(_srdhm(x, x), x) << 6)
        x = _saturate((_srdhm((1 << 28) + (1 << 27), x) - _srdhm(half, cube)) << 3)
    mantissa = _srdhm(x, 1518500250)  # sqrt(1/2) in Q0.31
    return (mantissa << -shift, 0) if shift < 0 else (mantissa, -shift)


def _reciprocal(b: int) -> int:
    """1/b for the mantissa of b in [1, 2), Q0.31, by three Newton steps from 48/17 - 32/17 x (docs/numerics.md, Division)."""
    mantissa = (b << (32 - b.bit_length())) - (1 << 31)
    half = (mantissa + _INT32_MAX + 1) >> 1
    x = 1515870810 + _srdhm(half, -1010580540)
    for _ in range(3):
        x = x + _saturate(_srdhm(x, (1 << 29) - _srdhm(half, x)) << 2)
    return _saturate(x << 1)
