"""The arithmetic of docs/numerics.md, implemented again in plain Python: integers, and doubles where that page says so."""

from __future__ import annotations

import math
import struct

_F32 = struct.Struct("<f")
INT32 = (-(1 << 31), (1 << 31) - 1)
ACTIVATIONS = 4  # NONE, RELU, RELU_N1_TO_1, RELU6


def f32(value: float) -> float:
    """Return the nearest float32."""
    try:
        return float(_F32.unpack(_F32.pack(value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def round_away(value: float) -> int:
    """Round to the nearest integer, halves away from zero."""
    whole = math.floor(abs(value))
    whole += abs(value) - whole >= 0.5
    return whole if value >= 0 else -whole


def multiplier(real: float) -> tuple[int, int]:
    """Return (M, shift) for a real factor."""
    if real == 0.0:
        return 0, 0
    fraction, shift = math.frexp(real)
    fixed = round_away(fraction * 2147483648.0)
    if fixed == 1 << 31:
        fixed, shift = 1 << 30, shift + 1
    return (fixed, shift) if shift >= -31 else (0, 0)


def narrow_multiplier(m: int, shift: int) -> tuple[int, int]:
    """Return a 31-bit multiplier as a 16-bit multiplier and a right shift, for 64-bit sums."""
    return ((m + (1 << 15)) >> 16 if m < 0x7FFF0000 else 0x7FFF), 15 - shift


def wrap(x: int) -> int:
    """Return the number modulo 2^32 as a signed INT32."""
    return (x + 2147483648) % 4294967296 - 2147483648


def saturate(x: int) -> int:
    """Return the number cut to the range of INT32."""
    return min(max(x, INT32[0]), INT32[1])


def high(a: int, b: int) -> int:
    """Return the upper half of the doubled product, rounded."""
    return saturate((a * b + (1 << 30)) >> 31)


def halve(x: int, bits: int) -> int:
    """Shift right by `bits`, rounding halves away from zero."""
    if bits == 0:
        return x
    rest = x & ((1 << bits) - 1)
    return (x >> bits) + (rest > (1 << (bits - 1)) - 1 + (x < 0))


def rescale(x: int, m: int, shift: int) -> int:
    """Multiply by a quantized multiplier, rounding twice."""
    return halve(high(wrap(x << max(shift, 0)), m), max(-shift, 0))


def clamp(value: int, low: int, high_: int) -> int:
    """Return the number cut to a range."""
    return min(max(value, low), high_)


def limits(dtype: str) -> tuple[int, int]:
    """Return the smallest and largest stored value of an integer type."""
    return {"INT8": (-128, 127), "UINT8": (0, 255), "INT16": (-32768, 32767)}[dtype]


def steps(real: float, scale: float, zero: int) -> int:
    """Return a real bound in steps of the scale, as it is stored."""
    return zero + round_away(f32(f32(real) / scale))


def activation(kind: int, scale: float, zero: int, dtype: str) -> tuple[int, int]:
    """Return the range of stored values that a fused activation allows."""
    low, top = limits(dtype)
    if kind == 1:
        return max(low, zero), top
    if kind == 2:
        return max(low, steps(-1.0, scale, zero)), min(top, steps(1.0, scale, zero))
    if kind == 3:
        return max(low, zero), min(top, steps(6.0, scale, zero))
    if kind == 0:
        return low, top
    raise ValueError(f"activation {kind}")


def window(size: int, kernel: int, stride: int, dilation: int, padding: int) -> tuple[int, int]:
    """Return (output size, padding before) of a window; padding 0 is SAME."""
    extent = (kernel - 1) * dilation + 1
    count = -(-size // stride) if padding == 0 else (size + stride - extent) // stride
    return count, max((count - 1) * stride + extent - size, 0) // 2


def exact31(acc: int, m: int, shift: int) -> int:
    """Multiply by a 31-bit multiplier and shift right, rounding once."""
    return saturate((acc * m + (1 << (shift - 1))) >> shift)


def exact53(acc: int, m: int, word: int) -> int:
    """Return round(double(acc) * factor); the IEEE product is computed in integers."""
    mantissa = (m & 0x7FFFFFFF) << 22 | (word & 0xFFFFFFFF) >> 8
    product = abs(acc) * mantissa
    dropped = max(product.bit_length() - 53, 0)
    kept, rest = product >> dropped, product & ((1 << dropped) - 1)
    if dropped:
        half = 1 << (dropped - 1)
        kept += rest > half or (rest == half and kept & 1)
    right = (word & 0xFF) - dropped
    whole = (kept + (1 << (right - 1))) >> right if right > 0 else kept << -right
    return saturate(-whole if acc < 0 else whole)


def rounds_as_double(real: float, mode: int, m: int, word: int, low: int, top: int) -> bool:
    """Return whether a call's rounding equals round(double(acc) * real), cut to [low, top], for every INT32 accumulator.

    Both are monotone, so they agree everywhere when they agree on both sides of each of the at most 255 places where the
    double result grows (or falls, for a negative factor).
    """
    shift = word if mode == 2 else word & 0xFF
    if mode == 2 and not 1 <= shift <= 62:
        return False
    if mode == 3 and (not 37 <= shift <= 127 or m < 0):
        return False

    def actual(acc: int) -> int:
        return clamp(exact31(acc, m, word) if mode == 2 else exact53(acc, m, word), low, top)

    def reference(acc: int) -> int:
        return clamp(round_away(float(acc) * real), low, top)

    if mode == 3 and same_mantissa(real, m, word):
        return True
    ends = INT32 if real >= 0 else INT32[::-1]
    if any(actual(acc) != reference(acc) for acc in (*ends, 0)):
        return False
    if real == 0:
        return m == 0
    sign = 1 if real > 0 else -1
    for k in range(low + 1, top + 1):
        # The least acc * sign whose result reaches k lies beside the quotient.
        guess = math.ceil((k - 0.5) / abs(real))
        for near in range(guess - 2, guess + 3):
            acc = near * sign
            if INT32[0] <= acc <= INT32[1] and actual(acc) != reference(acc):
                return False
    return True


def same_mantissa(real: float, m: int, word: int) -> bool:
    """Return whether m and word hold the mantissa and exponent of the double itself: then sums below 2^53 round equally."""
    fraction, exponent = math.frexp(real)
    mantissa = int(math.ldexp(fraction, 53))
    return (m & 0x7FFFFFFF) << 22 | (word & 0xFFFFFFFF) >> 8 == mantissa and word & 0xFF == min(
        max(53 - exponent, 0), 127
    )
