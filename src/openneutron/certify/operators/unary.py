"""Rules of functions of one byte: 256 entries derived from the definition, independent of how the compiler computes them."""

from __future__ import annotations

import hashlib
import math
import struct
from array import array
from collections.abc import Callable, Hashable
from functools import lru_cache

from openneutron.certify.functions import Unknown, function_of, wrong_entries
from openneutron.certify.numbers import (
    activation,
    clamp,
    f32,
    halve,
    high,
    limits,
    multiplier,
    rescale,
    round_away,
    saturate,
    steps,
    wrap,
)  # fmt: skip
from openneutron.certify.operators import Context, rule
from openneutron.certify.operators.elements import elementwise
from openneutron.certify.refused import Refused
from openneutron.certify.tags import constant, value_of
from openneutron.certify.world import World

_BYTES = ("INT8", "UINT8")


def table_of(function: Callable[[int], int], given: str, made: str) -> bytes:
    """Return the table of an integer function of the stored value, indexed by the byte."""
    low, top = limits(given)
    least, most = limits(made)
    table = bytearray(256)
    for q in range(low, top + 1):
        table[q & 0xFF] = clamp(function(q), least, most) & 0xFF
    return bytes(table)


@lru_cache(maxsize=256)
def wide_rescaling(
    given: str, made: str, zeros: tuple[int, int], factor: tuple[int, int], ends: tuple[int, int]
) -> bytes:
    """Return an identifier of a rescaling with 16 bits on one or both sides: the digest of all its values."""
    (low, top), (least, most) = limits(given), limits(made)
    least, most = max(least, ends[0]), min(most, ends[1])
    values = array("i", (clamp(rescale(q - zeros[0], *factor) + zeros[1], least, most) for q in range(low, top + 1)))
    return hashlib.sha256(f"{given} {made} ".encode() + values.tobytes()).digest()


def apply_wide(world: World, meaning: Hashable, tags: array[int], given: int, made: int) -> array[int]:
    """Return the tags of a function of one element, applied to elements of `given` bytes.

    The same function of the same element has the same tags everywhere.
    """
    world.seen.add(("function", meaning))
    result, at = array("Q"), 0
    while at < len(tags):
        start, run = world.symbols.elements(tags, at, given, made, meaning)
        result.extend(range(start, start + run * made))
        at += run * given
    return result


def _apply(c: Context, function: Callable[[int], int]) -> list[array[int]] | None:
    return [c.world.symbols.apply_table(c.tags(0), table_of(function, c.tensor(0).dtype, c.out.dtype))]


def _rescale_to_output(c: Context, factor: tuple[int, int], low: int, top: int) -> list[array[int]] | None:
    """Rescale the input to the output's scale, cut to [low, top]."""
    x, zeros = c.tensor(0), (c.tensor(0).quantization[1], c.out.quantization[1])
    if "INT16" in (x.dtype, c.out.dtype):
        meaning = wide_rescaling(x.dtype, c.out.dtype, zeros, factor, (low, top))
        return [apply_wide(c.world, meaning, c.tags(0), x.item, c.out.item)]
    return _apply(c, lambda q: clamp(rescale(q - zeros[0], *factor) + zeros[1], low, top))


def _fits(c: Context) -> bool:
    x, y = c.tensor(0), c.out
    return (
        x.dtype in _BYTES
        and y.dtype in _BYTES
        and len(x.scale) == 1
        and len(y.scale) == 1
        and min(x.scale[0], y.scale[0]) > 0
    )


def _fits_wide(c: Context) -> bool:
    """Return whether both tensors are per-tensor quantized, with 8 bits or with 16 bits and zero point 0."""
    x, y = c.tensor(0), c.out
    if "INT16" not in (x.dtype, y.dtype):
        return _fits(c)
    known = all(t.dtype in ("INT8", "INT16") and len(t.scale) == 1 and t.scale[0] > 0 for t in (x, y))
    return known and not any(t.dtype == "INT16" and t.quantization[1] for t in (x, y))


def _float(c: Context, function: Callable[[float], float]) -> list[array[int]] | None:
    (s, z), (so, zo) = c.tensor(0).quantization, c.out.quantization
    inverse = f32(1.0 / so)

    def entry(q: int) -> int:
        try:
            value = f32(function(f32(s * (q - z))) * inverse)
        except OverflowError:
            value = math.inf
        if math.isinf(value):
            return 1 << 31 if value > 0 else -(1 << 31)
        return int(f32(f32(float(round_away(value))) + zo))

    return _apply(c, entry)


def _f(function: Callable[[float], float]) -> Callable[[float], float]:
    def round_result(x: float) -> float:
        try:
            return f32(function(x))
        except OverflowError:
            return math.inf

    return round_result


def _logistic(x: float) -> float:
    return f32(1.0 / f32(1.0 + _f(math.exp)(-x)))


def _gelu(x: float) -> float:
    return f32(f32(0.5 * x) * _f(math.erfc)(f32(x * f32(-math.sqrt(0.5)))))


def _gelu_tanh(x: float) -> float:
    cube = f32(f32(f32(f32(0.044715) * x) * x) * x)
    inner = f32(f32(math.sqrt(2.0 / math.pi)) * f32(x + cube))
    return f32(f32(0.5 * x) * f32(1.0 + _f(math.tanh)(inner)))


_FLOATS: dict[str, Callable[[float], float]] = {
    "LOGISTIC": _logistic,
    "TANH": _f(math.tanh),
    "EXP": _f(math.exp),
    "ELU": lambda x: _f(math.expm1)(x) if x < 0 else x,
}


@rule("LOGISTIC", "TANH", "EXP", "ELU", "GELU", "LOG")
def evaluate_in_float(c: Context) -> list[array[int]] | None:
    """Dequantize, evaluate in float32, requantize and round; 16-bit LOGISTIC and TANH interpolate in a table."""
    if c.out.dtype == "INT16":
        return _interpolate(c)
    if not _fits(c):
        return None
    if c.op.code == "GELU":
        return _float(c, _gelu_tanh if c.op.options.get("Approximate") else _gelu)
    if c.op.code == "LOG":
        so, zo = c.out.quantization
        least = f32((limits(c.out.dtype)[0] - zo) * so)
        return _float(c, lambda x: least if x <= 0 else f32(math.log(x)))
    return _float(c, _FLOATS[c.op.code])


def _interpolate(c: Context) -> list[array[int]] | None:
    """Compute 16-bit LOGISTIC and TANH from one table."""
    if c.op.code not in ("LOGISTIC", "TANH") or not _fits_wide(c) or c.tensor(0).dtype != "INT16":
        return None
    scale, tangent = c.tensor(0).scale[0], int(c.op.code == "TANH")
    if c.out.scale[0] != 2.0**-15:
        return None
    m, shift = _steps(scale, (2.0**-12, 2.0**-11) if tangent else (2.0**-12,))
    if m > 65535:
        return None
    return [apply_wide(c.world, ("lut16", logistic_table(), tangent, m, shift), c.tags(0), 2, 2)]


def _steps(scale: float, exact: tuple[float, ...]) -> tuple[int, int]:
    """Return multiplier and shift that convert the input to the table's steps of 1/12288."""
    if scale in exact:
        return int(scale * 12288), 0
    shift = 0
    while scale * 12288 * 2.0**shift <= 32767 / 2 and shift < 31:
        shift += 1
    return int(scale * 12288 * 2.0**shift), shift


def logistic_table() -> bytes:
    """Return the logistic function at n/24 as 256 UINT16, each raised by half of the chord's distance from the curve."""
    found = []
    for n in range(255):
        s = 1.0 / (1.0 + math.exp(-n / 24))
        bend = s * (1.0 - s) * (2.0 * s - 1.0) / 24**2 / 16.0
        found.append(math.floor(65536.0 * (s + bend) + 0.5))
    return struct.pack("<256H", *found, 65535)


@rule("QUANTIZE")
def quantize(c: Context) -> list[array[int]] | None:
    """Convert between integer types."""
    if not _fits_wide(c):
        return None
    return _rescale_to_output(c, multiplier(c.tensor(0).scale[0] / c.out.scale[0]), *limits(c.out.dtype))


@rule("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1")
def clamp_activation(c: Context) -> list[array[int]] | None:
    """Rescale the input and cut it to the range of the activation."""
    if not _fits_wide(c) or (c.out.dtype == "INT16" and c.op.code not in ("RELU", "RELU6")):
        return None
    if "INT16" in (c.tensor(0).dtype, c.out.dtype) and c.tensor(0).dtype != c.out.dtype:
        return None
    s, (so, zo) = c.tensor(0).scale[0], c.out.quantization
    bounds: dict[str, tuple[float, float | None]] = {
        "RELU": (0.0, None), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0), "RELU_0_TO_1": (0.0, 1.0),
    }  # fmt: skip
    least, most = bounds[c.op.code]
    low = steps(least, so, zo)
    top = limits(c.out.dtype)[1] if most is None else steps(most, so, zo)
    return _rescale_to_output(c, multiplier(f32(s / so)), low, top)


@rule("LEAKY_RELU")
def leaky_relu(c: Context) -> list[array[int]] | None:
    """Rescale positive and negative inputs with two slopes."""
    if c.tensor(0).dtype == c.out.dtype == "INT16" and _fits_wide(c):
        return _leaky_relu16(c)
    if not _fits(c):
        return None
    (s, z), (so, zo) = c.tensor(0).quantization, c.out.quantization
    slope = f32(f32(s * c.op.options.get("Alpha", 0.0)) / so)
    plain, scaled, sign = multiplier(f32(s / so)), multiplier(abs(slope)), -1 if slope < 0 else 1
    return _apply(c, lambda q: (rescale(q - z, *plain) if q >= z else sign * rescale(q - z, *scaled)) + zo)


def _leaky_relu16(c: Context) -> list[array[int]] | None:
    """Compute it as PRELU with a slope of 1 or -1 whose scale is the magnitude of alpha."""
    (s, _), (so, _) = c.tensor(0).quantization, c.out.quantization
    alpha = c.op.options.get("Alpha", 0.0)
    (m, shift), (slope, slope_shift) = multiplier(f32(s / so)), multiplier(f32(f32(s * abs(alpha)) / so))
    low, top = limits("INT16")
    params = {
        "input_zero": 0, "slope_zero": 0, "multiplier": m, "shift": shift, "slope_multiplier": slope,
        "slope_shift": slope_shift, "output_zero": 0, "clamp_low": low, "clamp_high": top,
    }  # fmt: skip
    slopes = constant((-1 if alpha < 0 else 1).to_bytes(2, "little", signed=True) * (c.out.size // 2))
    return [elementwise(c.world, "prelu", params, 1, "INT16", c.tags(0), slopes)]


@rule("ABS")
def absolute(c: Context) -> list[array[int]] | None:
    """Return the magnitude."""
    if not _fits(c):
        return None
    (s, z), (so, zo) = c.tensor(0).quantization, c.out.quantization
    factor = multiplier(f32(s / so))
    return _apply(c, lambda q: (abs(q - z) if s == so else rescale(abs(q - z), *factor)) + zo)


@rule("NEG")
def negate(c: Context) -> list[array[int]] | None:
    """Negate the stored byte, where the scales allow it."""
    if not _fits(c) or c.tensor(0).quantization != c.out.quantization or c.out.quantization[1]:
        return None
    return [c.world.symbols.apply_table(c.tags(0), bytes(-q & 0xFF for q in range(256)))]


@rule("SQRT")
def square_root(c: Context) -> list[array[int]] | None:
    """Compute the square root, truncated; negative inputs give the lowest output."""
    if not _fits(c):
        return None
    (s, z), (so, zo) = c.tensor(0).quantization, c.out.quantization

    def entry(q: int) -> int:
        if q < z:
            return limits(c.out.dtype)[0]
        return int(f32(f32(math.sqrt(f32(s * (q - z)))) / so)) + zo

    return _apply(c, entry)


@rule("RSQRT")
def inverse_root(c: Context) -> list[array[int]] | None:
    """Compute 1/sqrt(x) by Newton's iteration in fixed point."""
    if not _fits(c):
        return None
    (s, z), (so, zo) = c.tensor(0).quantization, c.out.quantization
    m, shift = multiplier(1.0 / f32(f32(math.sqrt(s)) * so))
    low, top = limits(c.out.dtype)

    def entry(q: int) -> int:
        v = q - z
        if v <= 0:
            return top if v == 0 else low
        mantissa, exponent = _newton_root(v)
        return rescale(rescale(1, mantissa, exponent + 20), m, shift - 20) + zo

    return _apply(c, entry)


def _newton_root(v: int) -> tuple[int, int]:
    if v == 1:
        return (1 << 31) - 1, 0
    pairs = (31 - v.bit_length()) // 2 - 1
    shift = 11 - pairs
    half = halve((v << 2 * pairs) >> 1, 1)
    x = 1 << 28
    for _ in range(5):
        cube = saturate(high(high(x, x), x) << 6)
        x = saturate((high(402653184, x) - high(half, cube)) << 3)
    mantissa = high(x, 1518500250)
    return (mantissa << -shift, 0) if shift < 0 else (mantissa, -shift)


@rule("HARD_SWISH")
def hard_swish(c: Context) -> list[array[int]] | None:
    """Compute x * relu6(x + 3) / 6 in 16 bits."""
    if not _fits(c):
        return None
    (s, z), (so, zo) = c.tensor(0).quantization, c.out.quantization
    step = f32(s / 128.0)
    (mo, eo), (mr, er) = multiplier(f32(step / so)), multiplier(f32(step / f32(3.0 / 32768.0)))
    mo, mr = _narrow(mo), _narrow(mr)

    def entry(q: int) -> int:
        wide = _wrap16((q - z) * 128)
        gate = wide
        if er > 0:
            gate = _cut16(gate << (er - 1))
        gate = _high16(gate, mr)
        gate = _cut16(gate << 1) if er > 0 else _halve16(gate, -er) if er < 0 else gate
        gate = _wrap16((gate + 32768) >> 1)
        both = gate * _high16(wide, mo)
        part = abs(both) >> 15
        return _halve16(-part if both < 0 else part, -eo) + zo

    return _apply(c, entry) if eo <= 0 else None


def _narrow(m: int) -> int:
    return 32767 if m >= (1 << 31) - 1 - (1 << 15) else (m + (1 << 15)) >> 16


def _wrap16(x: int) -> int:
    return (x + 32768) % 65536 - 32768


def _cut16(x: int) -> int:
    return clamp(x, -32768, 32767)


def _high16(a: int, b: int) -> int:
    return _cut16((a * b + (1 << 14)) >> 15)


def _halve16(x: int, bits: int) -> int:
    mask = (1 << bits) - 1 if bits < 16 else -1
    return (x >> bits) + ((x & mask) > (mask >> 1) + (x < 0))


@rule("DIV")
def divide(c: Context) -> list[array[int]] | None:
    """Divide by one constant."""
    if not _fits(c) or len(c.op.inputs) != 2 or c.tensor(1).size != 1 or value_of(c.tags(1)) is None:
        return None
    x, by = c.tensor(0), c.tensor(1)
    (s, z), (sb, zb), (so, zo) = x.quantization, by.quantization, c.out.quantization
    stored = c.tags(1)[0]
    divisor = (stored - 256 if by.dtype == "INT8" and stored > 127 else stored) - zb
    if divisor == 0 or by.dtype != x.dtype:
        return None
    m, shift = multiplier(f32(s / f32(sb * so)))
    inverse, bits = _reciprocal(abs(divisor)), abs(divisor).bit_length() - 1
    low, top = activation(c.op.options.get("FusedActivationFunction", 0), so, zo, c.out.dtype)

    def entry(q: int) -> int:
        a = (q - z) * (-1 if divisor < 0 else 1)
        spare = 31 - (a if a >= 0 else ~a).bit_length()
        quotient = high(high(wrap(a << spare), inverse), m)
        return clamp(halve(quotient, bits + spare - shift) + zo, low, top)

    return _apply(c, entry)


def _reciprocal(b: int) -> int:
    mantissa = (b << (32 - b.bit_length())) - (1 << 31)
    half = (mantissa + (1 << 31)) >> 1
    x = 1515870810 + high(half, -1010580540)
    for _ in range(3):
        x += saturate(high(x, (1 << 29) - high(half, x)) << 2)
    return saturate(x << 1)


@rule("STABLEHLO_COMPOSITE")
def composite(c: Context) -> list[array[int]] | None:
    """Apply a constant table of the entries for -128 to 127."""
    if c.op.options.get("Name") != b"openneutron.table" or len(c.op.inputs) != 2:
        return None
    entries = value_of(c.tags(1))
    if entries is None or len(entries) != 256 or c.tensor(0).dtype != "INT8":
        return None
    text = function_of(bytes(c.op.options.get("CompositeAttributes") or b""))
    if text:
        try:
            wrong = wrong_entries(text, c.tensor(0).quantization, c.out.quantization, entries)
        except Unknown:
            wrong = {}  # the function is not known here, so the table of the source counts
        for stored in wrong:
            raise Refused(f"operator {c.op.number}: the entry for {stored} is not that of its function", c.op.offset)
    return [c.world.symbols.apply_table(c.tags(0), entries[128:] + entries[:128])]
