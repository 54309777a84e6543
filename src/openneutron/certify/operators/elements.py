"""Rules of element-wise operators on two tensors, softmax, pools, reductions and interpolation."""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Callable
from math import prod

from openneutron.certify.numbers import (
    activation,
    clamp,
    f32,
    halve,
    high,
    limits,
    multiplier,
    round_away,
    window,
)  # fmt: skip
from openneutron.certify.operators import Context, axis_of, rule
from openneutron.certify.operators.moves import broadcast
from openneutron.certify.tags import constant, digest, value_of
from openneutron.certify.world import World, dense, gather_elements

_BYTES = ("INT8", "UINT8")
_KINDS = (*_BYTES, "INT16")
_SCALE_TOLERANCE = 0.001  # of the output scale of a 16-bit softmax, LiteRT's own
_MOST_SHIFT = 14  # of its factor, so that a 17-bit difference stays in INT32


def _pair(c: Context) -> bool:
    if len(c.op.inputs) != 2:
        return False
    tensors = (c.tensor(0), c.tensor(1), c.out)
    if not all(t.dtype == c.out.dtype and len(t.scale) == 1 for t in tensors):
        return False
    return c.out.dtype in _BYTES or (c.out.dtype == "INT16" and not any(t.quantization[1] for t in tensors))


def _binary(c: Context, kernel: str, params: dict[str, int], rounding: int) -> list[array[int]]:
    sides = [broadcast(c.tags(at), c.tensor(at).shape, c.out.shape, c.out.item) for at in range(2)]
    return [elementwise(c.world, kernel, params, rounding, c.out.dtype, sides[0], sides[1])]


def elementwise(
    world: World, kernel: str, params: dict[str, int], rounding: int, dtype: str, left: array[int], right: array[int]
) -> array[int]:
    """Return the tags of a kernel on two tensors of equal size; all parameters identify the kernel."""
    meaning = (kernel, tuple(sorted(params.items())), rounding, dtype)
    return world.add_computation(
        "elements", (meaning, digest(left), digest(right)), len(left), meaning=meaning, left=left, right=right
    )


@rule("ADD", "SUB", "SQUARED_DIFFERENCE")
def add(c: Context) -> list[array[int]] | None:
    """Add, subtract or square the difference after both inputs are rescaled to a common scale."""
    if not _pair(c):
        return _whole_numbers(c)
    if c.out.dtype == "INT16":
        return None if c.op.code == "SQUARED_DIFFERENCE" else _add16(c)
    (s1, z1), (s2, z2), (so, zo) = c.tensor(0).quantization, c.tensor(1).quantization, c.out.quantization
    twice = f32(2.0 * max(s1, s2))
    square = c.op.code == "SQUARED_DIFFERENCE"
    last = twice * twice / ((1 << 14) * so) if square else twice / f32((1 << 20) * so)
    (m1, e1), (m2, e2), (mo, eo) = multiplier(s1 / twice), multiplier(s2 / twice), multiplier(last)
    low, top = (
        limits(c.out.dtype)
        if square
        else activation(c.op.options.get("FusedActivationFunction", 0), so, zo, c.out.dtype)
    )
    params = {
        "zero1": z1, "multiplier1": m1, "shift1": e1, "zero2": z2, "multiplier2": m2, "shift2": e2,
        "output_multiplier": mo, "output_shift": eo, "output_zero": zo, "clamp_low": low, "clamp_high": top,
    }  # fmt: skip
    if square:
        return _binary(c, "squared_difference", params, 1)
    return _binary(c, "add", params | {"subtract": int(c.op.code == "SUB")}, 1)


def _add16(c: Context) -> list[array[int]] | None:
    """Add or subtract INT16: by shifts if all scales are powers of two, otherwise with 15 bits of head room."""
    scales = [t.scale[0] for t in (c.tensor(0), c.tensor(1), c.out)]
    low, top = activation(c.op.options.get("FusedActivationFunction", 0), *c.out.quantization, c.out.dtype)
    params = {"subtract": int(c.op.code == "SUB"), "clamp_low": low, "clamp_high": top}
    parts = [math.frexp(scale) for scale in scales]
    if c.op.options.get("PotScaleInt16", True) and all(fraction == 0.5 for fraction, _ in parts):
        shifts = [exponent - parts[2][1] for _, exponent in parts[:2]]
        if max(shifts) != 0 or min(shifts) < -15:
            return None  # LiteRT refuses it
        params |= {"shifts_only": 1, "shift1": shifts[0], "shift2": shifts[1]}
        params |= dict.fromkeys(("multiplier1", "multiplier2", "output_multiplier", "output_shift"), 0)
        return _binary(c, "add16", params, 1)
    twice = 2.0 * max(scales[:2])
    factors = [multiplier(one) for one in (scales[0] / twice, scales[1] / twice, twice / ((1 << 15) * scales[2]))]
    if any(shift > 0 for _, shift in factors):
        return None
    params["shifts_only"] = 0
    for name, exponent, (m, shift) in zip(
        ("multiplier1", "multiplier2", "output_multiplier"), ("shift1", "shift2", "output_shift"), factors, strict=True
    ):
        params |= {name: m, exponent: shift}
    return _binary(c, "add16", params, 1)


@rule("MUL")
def mul(c: Context) -> list[array[int]] | None:
    """Multiply and rescale by a float32 factor."""
    if not _pair(c):
        return _whole_numbers(c)
    (s1, z1), (s2, z2), (so, zo) = c.tensor(0).quantization, c.tensor(1).quantization, c.out.quantization
    m, shift = multiplier(f32(f32(s1 * s2) / so))
    low, top = activation(c.op.options.get("FusedActivationFunction", 0), so, zo, c.out.dtype)
    params = {"zero1": z1, "zero2": z2, "multiplier": m, "shift": shift, "output_zero": zo, "clamp_low": low}
    return _binary(c, "mul", params | {"clamp_high": top}, 1)


@rule("MAXIMUM", "MINIMUM")
def extreme(c: Context) -> list[array[int]] | None:
    """Compare stored values."""
    if len(c.op.inputs) != 2 or c.out.dtype not in _KINDS or any(c.tensor(at).dtype != c.out.dtype for at in range(2)):
        return _whole_numbers(c)
    return _binary(c, "minmax", {"minimum": int(c.op.code == "MINIMUM")}, 0)


@rule("PRELU")
def prelu(c: Context) -> list[array[int]] | None:
    """Rescale positive inputs, and multiply negative ones by a slope."""
    if not _pair(c) or c.out.dtype not in _BYTES:
        return None
    (s, z), (sa, za), (so, zo) = c.tensor(0).quantization, c.tensor(1).quantization, c.out.quantization
    m, shift = multiplier(f32(s / so))
    slope, slope_shift = multiplier(f32(f32(s * sa) / so))
    low, top = limits(c.out.dtype)
    params = {
        "input_zero": z, "slope_zero": za, "multiplier": m, "shift": shift, "slope_multiplier": slope,
        "slope_shift": slope_shift, "output_zero": zo, "clamp_low": low, "clamp_high": top,
    }  # fmt: skip
    return _binary(c, "prelu", params, 1)


@rule("FLOOR_DIV", "FLOOR_MOD")
def _whole_numbers(c: Context) -> list[array[int]] | None:
    """Compute with known integers without a scale, which converters leave in the model to compute shapes."""
    functions: dict[str, Callable[[int, int], int]] = {
        "ADD": lambda a, b: a + b, "SUB": lambda a, b: a - b, "MUL": lambda a, b: a * b, "MAXIMUM": max,
        "MINIMUM": min, "FLOOR_DIV": lambda a, b: a // b, "FLOOR_MOD": lambda a, b: a % b,
    }  # fmt: skip
    if c.op.code not in functions or len(c.op.inputs) != 2 or c.op.options.get("FusedActivationFunction", 0):
        return None
    if any(t.scale for t in (c.tensor(0), c.tensor(1), c.out)) or c.out.dtype not in ("INT32", "INT64"):
        return None
    sides = [c.numbers(at) for at in range(2)]
    if sides[0] is None or sides[1] is None:
        return None
    flat = []
    for at in range(2):
        wide = broadcast(c.tags(at), c.tensor(at).shape, c.out.shape, c.out.item)
        data = value_of(wide)
        assert data is not None
        step = c.out.item
        flat.append([int.from_bytes(data[k : k + step], "little", signed=True) for k in range(0, len(data), step)])
    bits = 8 * c.out.item
    try:
        made = [functions[c.op.code](a, b) % (1 << bits) for a, b in zip(*flat, strict=True)]
    except (ZeroDivisionError, ValueError):
        return None
    return [constant(b"".join(one.to_bytes(c.out.item, "little") for one in made))]


_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "EQUAL": lambda a, b: a == b, "NOT_EQUAL": lambda a, b: a != b, "LESS": lambda a, b: a < b,
    "LESS_EQUAL": lambda a, b: a <= b, "GREATER": lambda a, b: a > b, "GREATER_EQUAL": lambda a, b: a >= b,
    "LOGICAL_AND": lambda a, b: bool(a and b), "LOGICAL_OR": lambda a, b: bool(a or b),
}  # fmt: skip


@rule(*_COMPARISONS)
def compare(c: Context) -> list[array[int]] | None:
    """Compare known integers or BOOL values, as conditions of loops do."""
    kinds = {c.tensor(0).dtype, c.tensor(1).dtype}
    of = {"BOOL"} if c.op.code.startswith("LOGICAL") else {"INT32", "INT64"}
    if len(kinds) > 1 or not kinds <= of or c.out.dtype != "BOOL" or any(c.tensor(at).scale for at in range(2)):
        return None
    sides = []
    for at in range(2):
        step = c.tensor(at).item
        data = value_of(broadcast(c.tags(at), c.tensor(at).shape, c.out.shape, step))
        if data is None:
            return None
        sides.append([int.from_bytes(data[k : k + step], "little", signed=True) for k in range(0, len(data), step)])
    return [constant(bytes(_COMPARISONS[c.op.code](a, b) for a, b in zip(*sides, strict=True)))]


@rule("LOGICAL_NOT")
def logical_not(c: Context) -> list[array[int]] | None:
    """Negate a known BOOL value."""
    known = value_of(c.tags(0))
    return None if known is None or c.out.dtype != "BOOL" else [constant(bytes(not one for one in known))]


@rule("CAST")
def cast(c: Context) -> list[array[int]] | None:
    """Convert known integers to another width."""
    known = c.numbers(0)
    if known is None or c.out.dtype not in ("INT32", "INT64") or c.out.scale:
        return None
    bits = 8 * c.out.item
    return [constant(b"".join((one % (1 << bits)).to_bytes(c.out.item, "little") for one in known))]


@rule("SOFTMAX")
def softmax(c: Context) -> list[array[int]] | None:
    """Compute softmax over the last dimension, with a table of exponentials of differences."""
    x, y = c.tensor(0), c.out
    if x.dtype not in _KINDS or y.dtype != x.dtype or len(x.scale) != 1 or len(y.scale) != 1:
        return None
    if x.dtype == "INT16":
        return _softmax16(c)
    table = exponentials(float(c.op.options.get("Beta", 0.0)), x.scale[0])
    low, top = limits(y.dtype)
    meaning = (table, y.quantization[1], low, top, y.dtype)
    depth = x.shape[-1]
    return [
        c.world.add_computation(
            "softmax", (meaning, depth, digest(c.tags(0))), y.size, meaning=meaning, depth=depth, tags=c.tags(0)
        )
    ]


def _softmax16(c: Context) -> list[array[int]] | None:
    x, y = c.tensor(0), c.out
    if x.quantization[1] or y.quantization[1] or abs(y.scale[0] * 32768.0 - 1.0) > _SCALE_TOLERANCE:
        return None
    m, shift = multiplier(f32(x.scale[0] * float(c.op.options.get("Beta", 0.0))) / (10.0 / 65535))
    if shift > _MOST_SHIFT:
        return None
    meaning, depth = ("INT16", softmax_tables(), m, shift), x.shape[-1]
    return [
        c.world.add_computation(
            "softmax", (meaning, depth, digest(c.tags(0))), y.size, meaning=meaning, depth=depth, tags=c.tags(0)
        )
    ]


def softmax_tables() -> bytes:
    """Return tables of exp on [-10, 0] and 1 / (1 + x) on [0, 1], 513 INT16 each."""
    return _interpolation_table(math.exp, -10.0, 0.0) + _interpolation_table(lambda x: 1.0 / (1.0 + x), 0.0, 1.0)


def _interpolation_table(function: Callable[[float], float], low: float, top: float) -> bytes:
    """Return values in 1/32768, each lowered by half of the error of linear interpolation in the middle of its step."""
    step = (top - low) / 512
    found = []
    for i in range(512):
        value, then = round_away(32768.0 * function(low + i * step)), 32768.0 * function(low + (i + 1) * step)
        middle = round_away(32768.0 * function(low + i * step + step / 2.0))
        found.append(value - round_away((round_away((then + value) / 2.0) - middle) / 2.0))
    found.append(round_away(32768.0 * function(top)))
    return struct.pack("<513h", *(clamp(one, -32768, 32767) for one in found))


def exponentials(beta: float, scale: float) -> bytes:
    """Return exp(-d * beta * scale) in Q0.31 for d = 0 … 255 as INT32, 0 where the difference is too large to count."""
    m, shift = multiplier(min(beta * scale * (1 << 26), float((1 << 31) - 1)))
    left, right = max(shift, 0), max(-shift, 0)
    largest = (31 << 26) >> left
    found = []
    for d in range(256):
        if d > largest:
            found.append(0)
            continue
        found.append(_exponential(halve(high(-(d << left), m), right)))
    return struct.pack("<256i", *found)


def _exponential(a: int) -> int:
    if a == 0:
        return (1 << 31) - 1
    rest = (a & ((1 << 24) - 1)) - (1 << 24)
    x = (rest << 5) + (1 << 28)
    x2 = high(x, x)
    y = halve(high(halve(high(x2, x2), 2) + high(x2, x), 715827883) + x2, 1)
    result = 1895147668 + high(x + y, 1895147668)
    for bit, factor in enumerate((1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242), start=24):
        if (rest - a) >> bit & 1:
            result = high(result, factor)
    return result


@rule("AVERAGE_POOL_2D", "MAX_POOL_2D")
def pool(c: Context) -> list[array[int]] | None:
    """Compute a pooling window on stored values."""
    x, y, o = c.tensor(0), c.out, c.op.options
    if x.dtype not in _KINDS or y.dtype != x.dtype or len(x.shape) != 4 or len(y.scale) != 1:
        return None
    kh, kw, sh, sw = o["FilterHeight"], o["FilterWidth"], o["StrideH"], o["StrideW"]
    (oh, top), (ow, left) = window(x.shape[1], kh, sh, 1, o["Padding"]), window(x.shape[2], kw, sw, 1, o["Padding"])
    if (oh, ow) != y.shape[1:3]:
        return None
    low, high_ = activation(o.get("FusedActivationFunction", 0), *y.quantization, y.dtype)
    kernel = "avg_pool2d" if c.op.code == "AVERAGE_POOL_2D" else "max_pool2d"
    geometry = (kh, kw, sh, sw, top, left)
    if kernel == "avg_pool2d" and (x.shape[0], kh, kw, oh, ow, top, left) == (1, *x.shape[1:3], 1, 1, 0, 0):
        return [_add_reduction(c, {"clamp_low": low, "clamp_high": high_}, 0, b"", x.shape, {1, 2})]
    meaning = (kernel, geometry, low, high_, x.dtype)
    return [
        c.world.add_computation(
            "pool", (meaning, x.shape, digest(c.tags(0))), y.size,
            meaning=meaning, tags=c.tags(0), shape=x.shape, out=y.shape, item=x.item,
        )
    ]  # fmt: skip


def _add_reduction(
    c: Context, params: dict[str, int], rounding: int, steps: bytes, shape: tuple[int, ...], axes: set[int]
) -> array[int]:
    """Return the tags of a reduction, identified by the elements that each output reads, whatever the shape is.

    So a mean over an image equals one computed from running sums of its rows.
    """
    x = c.tensor(0)
    boxes, count = group_by_output(c.tags(0), shape, axes, x.item), prod(shape[axis] for axis in axes)
    meaning = (tuple(sorted(params.items())), rounding, steps, x.dtype)
    return c.world.add_computation(
        "reduce", (meaning, count, digest(boxes)), c.out.size, meaning=meaning, tags=boxes, count=count, item=x.item
    )


@rule("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN")
def reduction(c: Context) -> list[array[int]] | None:
    """Reduce any dimensions; the elements that one output reads are stored one after the other."""
    x, y, axes = c.tensor(0), c.out, c.numbers(1)
    if x.dtype not in _KINDS or y.dtype != x.dtype or axes is None or not x.shape:
        return None
    reduced = {axis_of(axis, len(x.shape)) for axis in axes}
    count = prod(x.shape[axis] for axis in reduced)
    (s, z), (so, zo) = x.quantization, y.quantization
    low, top = limits(y.dtype)
    steps = b""
    rounding = 1
    if c.op.code in ("REDUCE_MAX", "REDUCE_MIN"):
        if (s, z) != (so, zo):
            return None
        params = {"mode": 1 if c.op.code == "REDUCE_MAX" else 2}
        rounding = 0
    elif len(x.scale) != 1 or len(y.scale) != 1 or (x.dtype == "INT16" and c.op.code == "SUM"):
        return None
    elif c.op.code == "SUM" and x.dtype == "INT8":
        params, rounding, steps = {"mode": 0, "clamp_low": low}, 0, sum_steps(s, z, so, zo, count)
    else:
        m, shift = multiplier(s / so)
        if c.op.code == "MEAN":
            bits = min(count.bit_length() - 1, 32, 31 + shift)
            m, shift = (m << bits) // count, shift - bits
        params = {"mode": 0, "offset": -z * count, "multiplier": m, "shift": shift, "output_zero": zo}
        params |= {"clamp_low": low, "clamp_high": top}
    return [_add_reduction(c, params, rounding, steps, x.shape, reduced)]


def group_by_output(tags: array[int], shape: tuple[int, ...], reduced: set[int], item: int) -> array[int]:
    """Reorder elements so that those reduced to one output are adjacent."""
    strides = dense(shape)
    order = [*(at for at in range(len(shape)) if at not in reduced), *sorted(reduced)]
    return gather_elements(tags, item, [shape[at] for at in order], [strides[at] for at in order])


def sum_steps(s: float, z: int, so: float, zo: int, count: int) -> bytes:
    """Return the least sum of INT8 values for each output above the lowest, by LiteRT's float32 scaling of sums."""
    scale = f32(s / so)
    bias = f32(f32(-z * scale) * count)

    def result(total: int) -> int:
        return round_away(f32(f32(f32(float(total)) * scale) + bias)) + zo

    found = []
    for wanted in range(-127, 128):
        low, top = -128 * count, 127 * count + 1
        while low < top:
            middle = (low + top) // 2
            if result(middle) >= wanted:
                top = middle
            else:
                low = middle + 1
        found.append(low)
    return struct.pack("<255i", *found)


@rule("ARG_MAX", "ARG_MIN")
def arg_max(c: Context) -> list[array[int]] | None:
    """Find the first largest or smallest value along one dimension."""
    x, y, axes = c.tensor(0), c.out, c.numbers(1)
    if x.dtype not in _BYTES or y.dtype not in ("INT32", "INT64") or axes is None or len(axes) != 1:
        return None
    axis = axis_of(axes[0], len(x.shape))
    tags = group_by_output(c.tags(0), x.shape, {axis}, x.item)
    meaning = (1 if c.op.code == "ARG_MAX" else -1, x.dtype, y.dtype)
    return [
        c.world.add_computation(
            "arg_max", (meaning, x.shape[axis], digest(tags)), y.size,
            meaning=meaning, tags=tags, count=x.shape[axis], item=y.item,
        )
    ]  # fmt: skip


@rule("RESIZE_BILINEAR")
def resize_bilinear(c: Context) -> list[array[int]] | None:
    """Interpolate between four neighbours."""
    x, y, o = c.tensor(0), c.out, c.op.options
    if x.dtype not in _KINDS or y.dtype != x.dtype or len(x.shape) != 4 or len(y.shape) != 4:
        return None
    align, half = bool(o.get("AlignCorners")), bool(o.get("HalfPixelCenters"))
    scales = [step(x.shape[at], y.shape[at], align, x.dtype) for at in (1, 2)]
    meaning = (*scales, int(half), x.dtype)
    return [
        c.world.add_computation(
            "bilinear", (meaning, x.shape, y.shape, digest(c.tags(0))), y.size,
            meaning=meaning, tags=c.tags(0), shape=x.shape, out=y.shape, item=x.item,
        )
    ]  # fmt: skip


def step(size: int, wanted: int, align: bool, dtype: str) -> int:
    """Return input pixels per output pixel: for INT8 in 1/1024, for UINT8 as the bits of a float32."""
    if align and wanted > 1:
        size, wanted = size - 1, wanted - 1
    if dtype == "UINT8":
        return int(struct.unpack("<i", struct.pack("<f", f32(size / wanted)))[0])
    return (1024 * size + wanted // 2) // wanted


def rows_between(at: int, scale: int, half: int, size: int, dtype: str) -> tuple[int, int]:
    """Return the two input rows that an output row is interpolated from."""
    if dtype == "UINT8":
        real = struct.unpack("<f", struct.pack("<i", scale))[0]
        t = f32(f32(f32(at + 0.5) * real) - 0.5) if half else f32(at * real)
        return clamp(math.floor(t), 0, size - 1), clamp(math.ceil(t), 0, size - 1)
    exact = at * scale + (scale // 2 - 512 if half else 0)
    low = max(int(exact / 1024), 0)
    return min(low, size - 1), clamp(int((exact + 1023) / 1024), 0, size - 1)
