"""Integer parameters from real scales, rounded as LiteRT's reference kernels do (docs/numerics.md, Shared primitives)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from openneutron.microcode.table import Rounding

INT8_RANGE = (-128, 127)
UINT8_RANGE = (0, 255)
INT16_RANGE = (-32768, 32767)
# From 31 on the reference's left shift is undefined (docs/numerics.md, Shared primitives).
MAX_LEFT_SHIFT = 30
# Neighbours of the nearest M that are tried, best first. Going up by a hair makes exact negative ties round away from
# zero; going down rescues factors whose upper neighbour crosses the next threshold.
_NEIGHBOURS = (0, 1, 2, 3, -1, -2)
_INT32 = (-(1 << 31), (1 << 31) - 1)
_MAX_SHIFT31 = 62  # (acc * M + 2^61) fits 64 bits
_MANTISSA_BITS = 53  # of a double; the channel table keeps the upper 31 in the multiplier, the others beside the shift
_LOW_BITS = 22
_ZERO_SHIFT53 = 127  # so far right that every product rounds to 0


def f32(value: float) -> float:
    """The nearest float32, as a Python float."""
    return float(np.float32(value))


def round_half_away(value: float) -> int:
    """C's round(): halves go away from zero."""
    whole = math.floor(abs(value))
    return (whole + (abs(value) - whole >= 0.5)) * (1 if value >= 0 else -1)


def multiplier(real: float) -> tuple[int, int]:
    """(M, shift) with real = M * 2^(shift-31), as the reference derives it.

    Example:
        >>> multiplier(1.0)
        (1073741824, 1)
    """
    if real == 0.0:
        return 0, 0
    mantissa, shift = math.frexp(real)
    fixed = round_half_away(mantissa * (1 << 31))
    if fixed == 1 << 31:
        fixed, shift = 1 << 30, shift + 1
    return (0, 0) if shift < -31 else (fixed, shift)


def multipliers(reals: npt.ArrayLike) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """`multiplier` of many factors at once: all M, all shifts.

    Example:
        >>> multipliers([1.0, 0.5])
        (array([1073741824, 1073741824]), array([1, 0]))
    """
    mantissas, shifts = np.frexp(np.asarray(reals, np.float64))
    scaled = mantissas * float(1 << 31)  # exact: only the exponent changes
    size = np.abs(scaled)
    whole = np.floor(size)
    fixed = np.copysign(whole + (size - whole >= 0.5), scaled).astype(np.int64)
    over = fixed == 1 << 31  # the lower end, -2^31, fits an INT32
    fixed, shifts = np.where(over, 1 << 30, fixed), shifts + over
    gone = (shifts < -31) | (fixed == 0)
    return np.where(gone, 0, fixed), np.where(gone, 0, shifts)


def activation_range(activation: int, scale: float, zero_point: int, limits: tuple[int, int]) -> tuple[int, int]:
    """Clamp of a fused activation (schema's ActivationFunctionType 0 NONE, 1 RELU, 2 RELU_N1_TO_1, 3 RELU6)."""
    low, high = limits

    def steps(real: float) -> int:
        return zero_point + round_half_away(float(np.float32(real) / np.float32(scale)))

    if activation == 1:
        return max(low, zero_point), high
    if activation == 2:
        return max(low, steps(-1.0)), min(high, steps(1.0))
    if activation == 3:
        return max(low, zero_point), min(high, steps(6.0))
    return low, high


class ExactTable(NamedTuple):
    """Multipliers and shift words of the channel table, for one of the two exact rounding modes."""

    multipliers: npt.NDArray[np.int64]
    shifts: npt.NDArray[np.int64]
    rounding: Rounding


def exact_multipliers(reals: Sequence[float], low: int, high: int) -> ExactTable:
    """Integers that replace round(double(acc) * real) for every INT32 accumulator (docs/numerics.md, Fully connected).

    `low` and `high` are the clamp before the zero point is added. A 31-bit M is proved for each channel. Some factors
    have none, not even a wider one: where real is a quotient rounded down, the double product reaches some halves
    and misses others. Then all of the call's channels get the double's own mantissa and exponent.

    Example:
        >>> exact_multipliers([0.5], -128, 127).rounding
        <Rounding.EXACT31: 2>
    """
    unique, where = np.unique(np.asarray(reals, np.float64), return_inverse=True)
    size = np.abs(unique)
    m, s, proved = _search(size, _thresholds(size, low, high), low, high)
    negative = unique < 0
    if negative.any():
        # Halves go away from zero on both sides, so a negative factor is the positive one of the negated accumulator,
        # which may also be 2^31.
        proved[negative] &= _agree_at(1 << 31, m, s, size, low, high)[negative]
        m[negative] *= -1
    if proved.all():
        return ExactTable(m[where], s[where], Rounding.EXACT31)
    if negative.any():
        raise ValueError("a negative factor that no multiplier of 31 bits replaces")
    mantissas, words = mantissa_words(unique)
    return ExactTable(mantissas[where], words[where], Rounding.EXACT53)


def _agree_at(
    acc: int, m: npt.NDArray[np.int64], s: npt.NDArray[np.int64], reals: npt.NDArray[np.float64], low: int, high: int
) -> npt.NDArray[np.bool_]:
    """Where integers and double arithmetic give the same clamped result for one more accumulator."""
    fixed = [(acc * int(one) + (1 << (int(shift) - 1))) >> int(shift) for one, shift in zip(m, s, strict=True)]
    double = [round_half_away(acc * float(real)) for real in reals]
    return np.array([min(max(a, low), high) == min(max(b, low), high) for a, b in zip(fixed, double, strict=True)])


def _thresholds(reals: npt.NDArray[np.float64], low: int, high: int) -> npt.NDArray[np.int64]:
    """T[c, k] = smallest INT32 acc with round(double(acc) * real) ≥ k, for k in (low, high]; 2^31 when there is none.

    The quotient and the product each err by 2^-53, less than one step of an INT32, so T is a neighbour of the quotient.
    """
    k = np.arange(low + 1, high + 1, dtype=np.float64)
    edge = k - 0.5
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        guess = np.ceil(edge / reals[:, None])
    guess = np.clip(np.nan_to_num(guess, posinf=2.0**31, neginf=-(2.0**31)), _INT32[0] - 2, _INT32[1] + 2)
    found = np.full(guess.shape, np.inf)
    for step in (1.0, 0.0, -1.0):
        acc = guess + step
        product = acc * reals[:, None]
        # Halves round away from zero: upwards for positive results, downwards for the others.
        reached = np.where(k >= 1, product >= edge, product > edge)
        found = np.where(reached, acc, found)
    return np.clip(found, _INT32[0], _INT32[1] + 1).astype(np.int64)


def _search(
    reals: npt.NDArray[np.float64], thresholds: npt.NDArray[np.int64], low: int, high: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """(M, shift, proved) per channel with an M of 31 bits; unproved channels keep zeros."""
    mantissa, exponent = np.frexp(reals)
    shift = 31 - exponent.astype(np.int64)
    # Below 2^-32 no INT32 accumulator reaches one half, so every result is 0.
    flat = (reals <= 0.0) | (shift > _MAX_SHIFT31)
    base = np.ceil(np.ldexp(mantissa, 31)).astype(np.int64)
    found_m = np.zeros(len(reals), np.int64)
    found_s = np.where(flat, 31, 0).astype(np.int64)
    proved = flat.copy()
    for neighbour in _NEIGHBOURS:
        at = np.flatnonzero(~proved & (shift >= 1) & (base + neighbour < 1 << 31))
        if not at.size:
            continue
        m, s = base[at] + neighbour, shift[at]
        good = _proves(m, s, thresholds[at], low, high)
        found_m[at[good]], found_s[at[good]], proved[at[good]] = m[good], s[good], True
    return found_m, found_s, proved


def _proves(
    m: npt.NDArray[np.int64], s: npt.NDArray[np.int64], thresholds: npt.NDArray[np.int64], low: int, high: int
) -> npt.NDArray[np.bool_]:
    """Both sides are monotone in acc, so they agree everywhere when they agree on both sides of each threshold."""
    k = np.arange(low + 1, high + 1, dtype=np.int64)

    def apply(acc: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        result: npt.NDArray[np.int64] = (acc * m[:, None] + (np.int64(1) << (s[:, None] - 1))) >> s[:, None]
        return result

    reaches = (apply(np.minimum(thresholds, _INT32[1])) >= k) | (thresholds > _INT32[1])
    below = (apply(np.maximum(thresholds - 1, _INT32[0])) < k) | (thresholds <= _INT32[0])
    proved: npt.NDArray[np.bool_] = np.asarray(np.all(reaches & below, axis=1))
    return proved


def reduced_multipliers(reals: npt.ArrayLike) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """All M of 16 bits and all right shifts of `Rounding.SINGLE` (docs/numerics.md, 16-bit activations).

    Example:
        >>> reduced_multipliers([0.5, 1.0])
        (array([16384, 16384]), array([15, 14]))
    """
    wide, shifts = multipliers(reals)
    return np.where(wide < 0x7FFF0000, (wide + (1 << 15)) >> 16, 0x7FFF), 15 - shifts


def mantissa_words(reals: npt.ArrayLike) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Multiplier and shift words of `Rounding.EXACT53`: the double's own mantissa and exponent."""
    fraction, exponent = np.frexp(np.asarray(reals, np.float64))
    mantissa = np.ldexp(fraction, _MANTISSA_BITS).astype(np.int64)
    shift = np.clip(_MANTISSA_BITS - exponent.astype(np.int64), 0, _ZERO_SHIFT53)
    words: npt.NDArray[np.int64] = shift | (mantissa & ((1 << _LOW_BITS) - 1)) << 8
    return mantissa >> _LOW_BITS, words


def channel_table(
    bias: npt.ArrayLike, multipliers: npt.ArrayLike, shifts: npt.ArrayLike, group: int
) -> npt.NDArray[np.uint8]:
    """bias[c], multiplier[c], shift[c] as INT32 arrays, each padded with zeros to whole groups of channels.

    One multiplier and one shift stand for those of all channels.
    """
    return _columns((bias, multipliers, shifts), group)


def wide_channel_table(
    bias: npt.ArrayLike, multipliers: npt.ArrayLike, shifts: npt.ArrayLike, group: int
) -> npt.NDArray[np.uint8]:
    """`channel_table` with a bias of 64 bits: its upper half is a fourth column."""
    return _columns((bias, multipliers, shifts, np.asarray(bias, np.int64) >> 32), group)


def _columns(given: Sequence[npt.ArrayLike], group: int) -> npt.NDArray[np.uint8]:
    columns = [np.asarray(column, np.int64) for column in given]
    channels = columns[0].size
    table = np.zeros((len(columns), -(-channels // group) * group), "<u4")
    for row, column in zip(table, columns, strict=True):
        row[:channels] = column.astype("<u4")  # wraps as the accumulator does
    return np.frombuffer(table.tobytes(), np.uint8)
