"""Rules of convolutions and fully connected layers with constant weights, and of products of two computed tensors."""

from __future__ import annotations

from array import array
from math import prod

from openneutron.certify.numbers import activation, f32, limits, multiplier, narrow_multiplier, window, wrap
from openneutron.certify.operators import Context, rule
from openneutron.certify.read.litert import Tensor
from openneutron.certify.tags import digest, value_of

_BYTES = ("INT8", "UINT8")
_INT32_BIAS = 2  # of the schema's TensorType
_SIZES = bytes(min(one, 256 - one) for one in range(256))  # of INT8 values, by their byte
_HALVES = bytes((*range(8), *range(248, 256)))  # a 4-bit value as an INT8 byte
_LOW_HALVES = bytes(_HALVES[byte & 15] for byte in range(256))
_HIGH_HALVES = bytes(_HALVES[byte >> 4] for byte in range(256))
_MOST_SUM = 1 << 47
_MOST_RESULT = 1 << 31  # where LiteRT's conversion of a double to INT32 is undefined
_WIDE_LEFT_SHIFT = 7  # the largest that LiteRT allows for 64-bit sums


def _usable(c: Context, data: int = 0, weights: int = 1) -> bool:
    x, w, y = c.tensor(data), c.tensor(weights), c.out
    known = value_of(c.tags(weights)) is not None
    unpacked = c.op.code in ("FULLY_CONNECTED", "CONV_2D") or (c.op.code == "DEPTHWISE_CONV_2D" and x.dtype == "INT8")
    kind = "INT8" if w.dtype == "INT4" and unpacked else w.dtype
    same = x.dtype == kind == y.dtype and x.dtype in _BYTES
    if x.dtype == y.dtype == "INT16":
        same = kind == "INT8" and min(w.scale, default=0.0) > 0 and _symmetric(x, w, y)
    return known and same and len(x.scale) == 1 == len(y.scale) and len(w.scale) >= 1


def _symmetric(*tensors: Tensor) -> bool:
    return not any(any(one.zero_point) for one in tensors)


def _int8_weights(c: Context, position: int) -> tuple[bytes, int]:
    """Return the weights as INT8 bytes, with the zero point in INT8."""
    w, data = c.tensor(position), value_of(c.tags(position))
    assert data is not None
    zero = w.zero_point[0] if w.zero_point else 0
    if w.dtype == "INT4":
        return _unpack(data, prod(w.shape)), zero
    if w.dtype == "UINT8":
        return bytes((one - 128) & 0xFF for one in data), zero - 128
    return data, zero


def _unpack(data: bytes, count: int) -> bytes:
    """Return 4-bit values as INT8 bytes; the lower half of a byte comes first."""
    if len(data) != count + 1 >> 1:
        raise ValueError(f"{len(data)} bytes of {count} 4-bit values")
    made = bytearray(2 * len(data))
    made[0::2], made[1::2] = data.translate(_LOW_HALVES), data.translate(_HIGH_HALVES)
    return bytes(made[:count])


def _biases(c: Context, position: int, count: int) -> list[int] | None:
    if not c.has(position):
        return [0] * count
    data, bias = value_of(c.tags(position)), c.tensor(position)
    wanted = "INT64" if c.out.dtype == "INT16" and not _narrow(c) else "INT32"
    if data is None or bias.dtype != wanted or len(data) != bias.item * count:
        return None
    step = bias.item
    return [int.from_bytes(data[at : at + step], "little", signed=True) for at in range(0, len(data), step)]


def _narrow(c: Context) -> bool:
    """Return whether sums of 16-bit activations wrap in 32 bits: they do if the operator declares INT32 biases."""
    return bool(c.op.options.get("QuantizedBiasType", 0) == _INT32_BIAS)


def _sums_fit(c: Context, channels: list[bytes], biases: list[int]) -> bool:
    """Return whether 64-bit sums and their factors stay in the range where LiteRT's arithmetic is defined."""
    if c.out.dtype != "INT16" or _narrow(c):
        return True
    # FULLY_CONNECTED rounds a double; the others have multipliers that LiteRT bounds.
    data = 2 if c.op.code == "TRANSPOSE_CONV" else 0
    factors = () if c.op.code == "FULLY_CONNECTED" else _factors(c, data, 1, len(channels))
    if any(multiplier(one)[1] > _WIDE_LEFT_SHIFT for one in factors):
        return False
    sizes = [sum(row.translate(_SIZES)) for row in channels]
    return all(abs(bias) + (size << 15) < _MOST_SUM for bias, size in zip(biases, sizes, strict=True))


def _convertible(c: Context, channels: list[bytes], biases: list[int], weights_zero: int, factors: list[float]) -> bool:
    """Return whether the products that FULLY_CONNECTED rounds in double fit INT32."""
    narrow = c.out.dtype != "INT16" or _narrow(c)
    data = 1 << 15 if c.out.dtype == "INT16" else 255
    for row, bias, factor in zip(channels, biases, factors, strict=True):
        size = sum(row.translate(_SIZES)) + abs(weights_zero) * len(row)
        total = abs(bias) + size * data
        if abs(factor) * (min(total, 1 << 31) if narrow else total) >= _MOST_RESULT:
            return False
    return True


def _multipliers(c: Context, factors: list[float]) -> list[tuple[int, int]]:
    """Return multiplier and shift of each channel."""
    made = [multiplier(factor) for factor in factors]
    return [narrow_multiplier(*one) for one in made] if c.out.dtype == "INT16" and not _narrow(c) else made


def _parameters(c: Context, data: int, weights_zero: int) -> tuple[object, ...]:
    """Return the parameters common to all channels, as a call states them."""
    x, y = c.tensor(data), c.out
    if y.dtype == "INT16":
        return (x.dtype, y.dtype, int(_narrow(c)), *_clamps(c))
    return (x.dtype, x.quantization[1], weights_zero, y.quantization[1], *_clamps(c))


def _factors(c: Context, data: int, weights: int, count: int) -> list[float]:
    x, w, y = c.tensor(data), c.tensor(weights), c.out
    if x.dtype == "UINT8":
        found = [f32(x.scale[0] * scale) / y.scale[0] for scale in w.scale]
    else:
        found = [x.scale[0] * scale / y.scale[0] for scale in w.scale]
    return found * count if len(found) == 1 else found


def _clamps(c: Context) -> tuple[int, int]:
    return activation(c.op.options.get("FusedActivationFunction", 0), *c.out.quantization, c.out.dtype)


def _fold_zero_point(c: Context, bias: int, part: int) -> int:
    """Return the bias minus `part`, the contribution of the input's zero point; INT16 inputs have none."""
    return bias if c.out.dtype == "INT16" else wrap(bias - part)


def _total(weights: bytes) -> int:
    """Return the sum of INT8 values."""
    return sum(array("b", weights))


@rule("CONV_2D", "DEPTHWISE_CONV_2D")
def convolution(c: Context) -> list[array[int]] | None:
    """Compute one weighted sum per output channel over a window; the input's zero point is folded into the bias."""
    if not _usable(c):
        return None
    o = c.op.options
    x, w, y = c.tensor(0), c.tensor(1), c.out
    if len(x.shape) != 4 or len(w.shape) != 4 or len(y.shape) != 4:
        return None
    data, wz = _int8_weights(c, 1)
    zero = x.quantization[1]
    if c.op.code == "CONV_2D":
        cout, kh, kw, cin = w.shape
        size = kh * kw * cin
        groups = x.shape[3] // cin
        channels = [data[at * size : (at + 1) * size] for at in range(cout)]
        lanes = cin == 1 and groups > 1
    else:
        _, kh, kw, cout = w.shape
        channels = [data[at::cout] for at in range(cout)]
        groups, lanes = x.shape[3], True
    biases = _biases(c, 2, cout)
    if biases is None or len(w.scale) not in (1, cout) or not _sums_fit(c, channels, biases):
        return None
    sh, sw = o.get("StrideH", 1), o.get("StrideW", 1)
    dh, dw = o.get("DilationHFactor", 1), o.get("DilationWFactor", 1)
    (oh, top), (ow, left) = window(x.shape[1], kh, sh, dh, o["Padding"]), window(x.shape[2], kw, sw, dw, o["Padding"])
    if (oh, ow, cout) != y.shape[1:] or cout % groups:
        return None
    folded = [
        _fold_zero_point(c, bias, zero * (_total(one) - wz * len(one)))
        for bias, one in zip(biases, channels, strict=True)
    ]
    rows = tuple(zip(channels, folded, _multipliers(c, _factors(c, 0, 1, cout)), strict=True))
    geometry = (kh, kw, sh, sw, dh, dw, top, left, groups)
    common = _parameters(c, 0, wz)
    return [
        c.world.add_computation(
            "lanes" if lanes else "dense", (geometry, common, rows, x.shape, digest(c.tags(0))), y.size,
            geometry=geometry, common=common, rows=rows, tags=c.tags(0), shape=x.shape, out=y.shape, item=x.item,
        )
    ]  # fmt: skip


@rule("TRANSPOSE_CONV")
def transpose_conv(c: Context) -> list[array[int]] | None:
    """Add a weighted window to the output for each input."""
    if not _usable(c, 2, 1):
        return None
    o, x, w, y = c.op.options, c.tensor(2), c.tensor(1), c.out
    if len(x.shape) != 4 or len(w.shape) != 4 or len(y.shape) != 4 or c.numbers(0) != list(y.shape):
        return None
    cout, kh, kw, cin = w.shape
    data, wz = _int8_weights(c, 1)
    biases = _biases(c, 3, cout)
    size = kh * kw * cin
    sh, sw = o.get("StrideH", 1), o.get("StrideW", 1)
    (_, top), (_, left) = window(y.shape[1], kh, sh, 1, o["Padding"]), window(y.shape[2], kw, sw, 1, o["Padding"])
    channels = [data[at * size : (at + 1) * size] for at in range(cout)]
    if biases is None or not _sums_fit(c, channels, biases):
        return None
    rows = tuple(zip(channels, biases, _multipliers(c, _factors(c, 2, 1, cout)), strict=True))
    geometry = (kh, kw, sh, sw, top, left)
    common = _parameters(c, 2, wz)
    return [
        c.world.add_computation(
            "transposed", (geometry, common, rows, x.shape, y.shape, digest(c.tags(2))), y.size,
            geometry=geometry, common=common, rows=rows, tags=c.tags(2), shape=x.shape, out=y.shape, item=x.item,
        )
    ]  # fmt: skip


@rule("FULLY_CONNECTED")
def fully_connected(c: Context) -> list[array[int]] | None:
    """Multiply vectors by a constant matrix, rounding once."""
    if not _usable(c) or len(c.tensor(1).shape) != 2 or c.op.options.get("WeightsFormat", 0):
        return None
    x, w, y = c.tensor(0), c.tensor(1), c.out
    count, depth = w.shape
    data, wz = _int8_weights(c, 1)
    biases = _biases(c, 2, count)
    if biases is None or len(w.scale) not in (1, count) or y.size != x.size // depth * count:
        return None
    zero = x.quantization[1]
    channels = [data[at * depth : (at + 1) * depth] for at in range(count)]
    if not _sums_fit(c, channels, biases):
        return None
    folded = [
        _fold_zero_point(c, bias, zero * (_total(one) - wz * depth)) for bias, one in zip(biases, channels, strict=True)
    ]
    factors = [x.scale[0] * scale / y.scale[0] for scale in w.scale]
    factors = factors * count if len(factors) == 1 else factors
    if not _convertible(c, channels, biases, wz, factors):
        return None
    rows = tuple(zip(channels, folded, factors, strict=True))
    common = _parameters(c, 0, wz)
    return [
        c.world.add_computation(
            "vectors", (common, rows, digest(c.tags(0))), y.size,
            common=common, rows=rows, tags=c.tags(0), depth=depth, count=count,
        )
    ]  # fmt: skip


@rule("BATCH_MATMUL")
def matmul(c: Context) -> list[array[int]] | None:
    """Multiply two computed matrices."""
    left, right, y = c.tensor(0), c.tensor(1), c.out
    wide = y.dtype == "INT16"
    if not left.dtype == right.dtype == y.dtype or not (y.dtype == "INT8" or (wide and _symmetric(left, right, y))):
        return None
    if not len(left.scale) == len(right.scale) == len(y.scale) == 1:
        return None
    if max(len(left.shape), len(right.shape)) > 5 or min(len(left.shape), len(right.shape)) < 2:
        return None
    factor = multiplier(f32(left.scale[0] * right.scale[0]) / y.scale[0])
    flags = bool(c.op.options.get("AdjX")), bool(c.op.options.get("AdjY"))
    depth = left.shape[-2 if flags[0] else -1]
    if wide and (factor[1] > _WIDE_LEFT_SHIFT or depth << 30 >= _MOST_SUM):
        return None
    factor = narrow_multiplier(*factor) if wide else factor
    zeros = left.quantization[1], right.quantization[1]
    common = (y.dtype, *flags, *zeros, *factor, y.quantization[1], *limits(y.dtype))
    sides = []
    wanted = (1,) * (5 - len(y.shape)) + y.shape
    for position, tensor in ((0, left), (1, right)):
        full = (1,) * (5 - len(tensor.shape)) + tensor.shape
        if any(a not in (1, b) for a, b in zip(full[:3], wanted[:3], strict=True)):
            return None
        sides.append((full, c.tags(position)))
    return [
        c.world.add_computation(
            "matmul", (common, *((full, digest(tags)) for full, tags in sides)), y.size,
            common=common, left=sides[0], right=sides[1], out=wanted, matrix=prod(y.shape[-2:]) * y.item,
        )
    ]  # fmt: skip
