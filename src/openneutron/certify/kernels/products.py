"""Rules of kernels on the multiplier array: weights are unpacked and compared with the source's, channel by channel."""

from __future__ import annotations

import struct
from array import array
from typing import Any

from openneutron.certify.kernels import rule
from openneutron.certify.kernels.elements import row_starts
from openneutron.certify.numbers import rounds_as_double, same_mantissa
from openneutron.certify.read.microcode import DTYPES
from openneutron.certify.world import Computation

WIDE = ("conv2d16", "depthwise_conv2d16", "transpose_conv2d16", "fully_connected16")
_DOUBLE, _SINGLE = 1, 4  # roundings
_LEAST53, _MOST53 = 37, 127  # shifts of a double's mantissa that the firmware accepts
Channel = tuple[bytes, int, tuple[int, int]]  # weights, bias, multiplier and shift


def _table(m: Any, call: Any) -> list[tuple[int, int, int]]:
    """Return bias, multiplier and shift of each channel; with 16-bit activations a fourth column is the bias's upper half."""
    count, units = call.output.channels, m.program.units
    column = -(-count // units) * units
    columns = 4 if call.kernel in WIDE else 3
    words = struct.unpack(f"<{columns * column}i", m.read_constant(call, "table", 4 * columns * column))
    if columns == 3:
        return [(words[c], words[column + c], words[2 * column + c]) for c in range(count)]
    low = [words[c] & 0xFFFFFFFF for c in range(count)]
    return [(low[c] | words[3 * column + c] << 32, words[column + c], words[2 * column + c]) for c in range(count)]


def unpack_matrices(m: Any, call: Any, role: str, parts: list[tuple[int, int]], taps: int = 1) -> list[list[bytes]]:
    """Return the rows of consecutive matrices, each packed as [rows/M][taps][depth/N][M][N]."""
    units, length = m.program.units, m.program.length
    sizes = [-(-rows // units) * taps * -(-depth // length) * units * length for rows, depth in parts]
    data = m.read_constant(call, role, sum(sizes))
    made, start = [], 0
    for (rows, depth), size in zip(parts, sizes, strict=True):
        blocks = -(-depth // length)
        tap = blocks * units * length
        matrix = []
        for row in range(rows):
            block, unit = divmod(row, units)
            first = start + block * taps * tap + unit * length
            line = bytearray()
            for at in range(first, first + taps * tap, tap):
                pieces = range(at, at + tap, units * length)
                line += b"".join([data[one : one + length] for one in pieces])[:depth]
            matrix.append(bytes(line))
        made.append(matrix)
        start += size
    return made


def _dense(m: Any, call: Any, taps: int, depth: int, groups: int) -> list[bytes]:
    """Return the weights of each channel, group by group."""
    parts = unpack_matrices(m, call, "weights", [(call.output.channels // groups, depth)] * groups, taps)
    return [row for part in parts for row in part]


def _channels(m: Any, call: Any, weights: Any) -> list[Channel]:
    """Return weights, bias, multiplier and shift of each output channel."""
    table = _table(m, call)
    packed = weights()
    return [(row, bias, (factor, shift)) for row, (bias, factor, shift) in zip(packed, table, strict=True)]


def _once(m: Any, call: Any, make: Any) -> Any:
    """Return the result of `make`, cached (with the places found) until the bytes of the call's constants change."""
    return m.once(call, ("weights", "table"), make, "places")


def _rounds(call: Any) -> bool:
    """Return whether the call has a convolution's rounding mode; 64-bit sums are rounded once."""
    return bool(call.rounding == (_SINGLE if call.kernel in WIDE and not call.params["narrow"] else _DOUBLE))


def _common(call: Any) -> tuple[Any, ...]:
    p = call.params
    if call.kernel in WIDE:
        kinds = DTYPES[call.operands["input"].dtype], DTYPES[call.output.dtype]
        return (*kinds, p["narrow"], p["clamp_low"], p["clamp_high"])
    return (
        DTYPES[call.operands["input"].dtype], p["input_zero"], p["weights_zero"], p["output_zero"], p["clamp_low"],
        p["clamp_high"],
    )  # fmt: skip


def _places(m: Any, call: Any, kind: str, fits: Any) -> list[tuple[Computation, Any]]:
    """Return the operators whose channels contain this call's, with the place in each; cached until the constants change."""
    memo = m.memo.get((call.at, "places"))
    if memo is not None and memo[0] == len(m.world.known.get(kind, [])):
        return list(memo[1])
    found = [(one, place) for one in m.candidates(call, kind) if (place := fits(one)) is not None]
    m.memo[call.at, "places"] = (len(m.world.known.get(kind, [])), found)
    return found


def _slice_of(rows: Any, wanted: list[Channel]) -> int | None:
    """Return the position of the wanted channels among a layer's channels."""
    count = len(wanted)
    for at in range(len(rows) - count + 1):
        if rows[at] == wanted[0] and list(rows[at : at + count]) == wanted:
            return at
    return None


def _frame(row: array[int] | None, zero: int, before: int, count: int) -> array[int]:
    """Return a row behind `before` bytes of padding, cut or padded to `count` bytes; None is a row outside the image."""
    pad = array("Q", [zero & 0xFF])
    if row is None:
        return pad * count
    made = (pad * min(before, count)) + row[: max(count - before, 0)]
    return made + pad * (count - len(made)) if len(made) < count else made[:count]


def _source_row(one: Computation, image: int, y: int) -> array[int] | None:
    _, h, w, c = one.what["shape"]
    if not 0 <= y < h:
        return None
    size = w * c * one.what["item"]
    at = (image * h + y) * size
    tags: array[int] = one.what["tags"][at : at + size]
    return tags


def _operand_row(m: Any, call: Any, image: int, y: int) -> array[int] | None:
    if not 0 <= y < call.operands["input"].height:
        return None
    tags: array[int] = m.row(call, "input", image, y)
    return tags


def _emit(m: Any, call: Any, one: Computation, image: int, y: int, first: int) -> None:
    """Write the tags of one row of an operator's output, or of some of its channels."""
    _, h, w, c = one.what["out"]
    o, item = call.output, one.what["item"]
    start = (image * h + y) * w * c
    if o.width * o.channels == w * c:
        made = array("Q", one.part(start * item, w * c * item))
    else:
        made = array("Q")
        for x in range(w):
            made.extend(one.part((start + x * c + first) * item, o.channels * item))
    m.put(call, image, y, m.apply_fused_table(call, made))


@rule("conv2d", "conv2d16")
def conv2d(m: Any, call: Any, first: int, last: int) -> None:
    """Match a dense or grouped convolution: whole, in slices of channels, or with neighbouring pixels merged."""
    p, x = call.params, call.operands["input"]
    if not _rounds(call) or p["groups"] < 1 or x.channels % p["groups"] or call.output.channels % p["groups"]:
        raise m.refuse(call, first, "its rounding or groups are none of a convolution")
    depth = x.channels // p["groups"]
    taps = p["kernel_h"] * p["kernel_w"]
    rows = _once(m, call, lambda: _channels(m, call, lambda: _dense(m, call, taps, depth, p["groups"])))
    _convolve(m, call, first, last, "dense", rows)


@rule("depthwise_conv2d", "depthwise_conv2d16")
def depthwise(m: Any, call: Any, first: int, last: int) -> None:
    """Match a depth-wise convolution: each output channel reads one input channel."""
    p, x, units = call.params, call.operands["input"], m.program.units
    if not _rounds(call) or call.output.channels != x.channels * p["depth_multiplier"]:
        raise m.refuse(call, first, "its rounding or channels are none of a depth-wise convolution")
    taps, count = p["kernel_h"] * p["kernel_w"], call.output.channels

    def weights() -> list[bytes]:
        data = m.read_constant(call, "weights", -(-count // units) * units * taps)
        found = []
        for channel in range(count):
            block, unit = divmod(channel, units)
            start = block * taps * units + unit
            found.append(data[start : start + (taps - 1) * units + 1 : units])
        return found

    rows = _once(m, call, lambda: _channels(m, call, weights))
    _convolve(m, call, first, last, "lanes", rows)


def _convolve(m: Any, call: Any, first: int, last: int, kind: str, rows: list[Channel]) -> None:
    common = _common(call)
    x, o = call.operands["input"], call.output

    def fits(one: Computation) -> Any:
        n, h, _w, _c = one.what["out"]
        if one.what["common"] != common or (n, h) != (o.batch, o.height) or one.what["shape"][0] != x.batch:
            return None
        return _match_direct(call, one, rows) or (_match_merged(call, one, rows) if kind == "dense" else None)

    mark = len(m.reads)
    for one, place in _places(m, call, kind, fits):
        if all(_rows_agree(m, call, one, place, image, y) for image in range(o.batch) for y in range(first, last)):
            m.remember_match(call, kind, one)
            for image in range(o.batch):
                for y in range(first, last):
                    _emit(m, call, one, image, y, place[1])
            return
        m.forget(mark)
    why = "no operator of the source has these weights, biases, multipliers and parameters"
    if _places(m, call, kind, fits):
        why = "the bytes it reads are not those its operator should read"
    raise m.refuse(call, first, why)


def _match_direct(call: Any, one: Computation, rows: list[Channel]) -> Any:
    """Return the place of the call's channels in an operator with the same window on the same pixels; None if there is none."""
    p, x, o = call.params, call.operands["input"], call.output
    kh, kw, sh, sw, dh, dw, _top, left, groups = one.what["geometry"]
    names = ("kernel_h", "kernel_w", "stride_h", "stride_w", "dilation_h", "dilation_w")
    if tuple(p[name] for name in names) != (kh, kw, sh, sw, dh, dw) or o.width != one.what["out"][2]:
        return None
    if x.channels != one.what["shape"][3] or p.get("groups", groups) != groups:
        return None
    if "depth_multiplier" in p and p["depth_multiplier"] * groups != len(one.what["rows"]):
        return None
    at = _slice_of(one.what["rows"], rows)
    if at is None or (groups > 1 and len(rows) != len(one.what["rows"])):
        return None
    need = (o.width - 1) * sw + (kw - 1) * dw + 1
    pixel = x.channels * x.item
    return "direct", at, need * pixel, left * pixel, p["pad_left"] * pixel, 0


def _strip_zeros(weights: bytes, kernel_h: int) -> tuple[int, tuple[bytes, ...]]:
    """Return the number of leading zeros common to all rows of a filter, and the rows without common zeros at both ends."""
    size = len(weights) // kernel_h
    lines = [weights[k * size : (k + 1) * size] for k in range(kernel_h)]
    if not any(weights):
        return 0, ()
    lead = min(size - len(line.lstrip(b"\0")) for line in lines)
    end = max(len(line.rstrip(b"\0")) for line in lines)
    return lead, tuple(line[lead:end] for line in lines)


def _match_merged(call: Any, one: Computation, rows: list[Channel]) -> Any:
    """Return the place of a call that reads several pixels of the source as one; None if it does not match.

    The weights are then shifted and padded with zeros, so that the sums are the same.
    """
    p, x, o = call.params, call.operands["input"], call.output
    kh, _, sh, sw, dh, dw, _, left, groups = one.what["geometry"]
    _, _, _width, depth = one.what["shape"]
    _, _, out_width, count = one.what["out"]
    if (p["kernel_h"], p["stride_h"], p["dilation_h"]) != (kh, sh, dh) or groups != 1 or p["groups"] != 1:
        return None
    if dw != 1 or p["dilation_w"] != 1 or p.get("weights_zero", 0) != 0 or o.channels % count:
        return None
    outputs = o.channels // count
    step = p["stride_w"] * x.channels
    if o.width * outputs != out_width or step != outputs * sw * depth:
        return None
    shift: int | None = None
    for at, (weights, bias, scale) in enumerate(rows):
        j, channel = divmod(at, count)
        wanted, its_bias, its_scale = one.what["rows"][channel]
        lead, lines = _strip_zeros(weights, kh)
        source_lead, source_lines = _strip_zeros(wanted, kh)
        if lines != source_lines or (bias, scale) != (its_bias, its_scale):
            return None
        moved = j * sw * depth + source_lead - lead
        if lines and shift is None:
            shift = moved
        if lines and moved != shift:
            return None
    need = (o.width - 1) * step + p["kernel_w"] * x.channels
    places = need, left * depth, p["pad_left"] * x.channels, shift or 0  # in elements
    return "merged", 0, *(place * x.item for place in places)


def _rows_agree(m: Any, call: Any, one: Computation, place: Any, image: int, y: int) -> bool:
    """Return whether the call reads the same rows as the operator, one kernel row after the other, including padding."""
    p = call.params
    kh, _, sh, _, dh, _, top, _, _ = one.what["geometry"]
    _, _, need, left, call_left, shift = place
    zero = p.get("input_zero", 0)  # 16-bit activations have no zero point
    m.spend(call.at, kh * (need + abs(shift)))
    for k in range(kh):
        source = _source_row(one, image, y * sh - top + k * dh)
        given = _operand_row(m, call, image, y * p["stride_h"] - p["pad_top"] + k * p["dilation_h"])
        theirs = _frame(source, zero, left, need + max(shift, 0))
        ours = _frame(given, zero, call_left, need)
        theirs = theirs[shift : shift + need] if shift >= 0 else _frame(theirs, zero, -shift, need)
        if ours != theirs:
            return False
    return True


@rule("transpose_conv2d", "transpose_conv2d16")
def transpose_conv2d(m: Any, call: Any, first: int, last: int) -> None:
    """Match a transposed convolution: each input adds a weighted window to the output."""
    p, x, o = call.params, call.operands["input"], call.output
    taps = p["kernel_h"] * p["kernel_w"]
    rows = _once(m, call, lambda: _channels(m, call, lambda: _dense(m, call, taps, x.channels, 1)))
    geometry = tuple(p[name] for name in ("kernel_h", "kernel_w", "stride_h", "stride_w", "pad_top", "pad_left"))
    mark = len(m.reads)
    for one in m.candidates(call, "transposed"):
        w = one.what
        if not _rounds(call) or (w["geometry"], w["common"], w["shape"], w["out"]) != (
            geometry,
            _common(call),
            x.shape,
            o.shape,
        ):
            continue
        if list(w["rows"]) != rows:
            continue
        m.forget(mark)
        agree = True
        for image in range(o.batch):
            for y in range(first, last):
                low = max(-(-(y + p["pad_top"] - p["kernel_h"] + 1) // p["stride_h"]), 0)
                top = min((y + p["pad_top"]) // p["stride_h"], x.height - 1)
                agree &= all(
                    _operand_row(m, call, image, at) == _source_row(one, image, at) for at in range(low, top + 1)
                )
        if agree:
            for image in range(o.batch):
                for y in range(first, last):
                    _emit(m, call, one, image, y, 0)
            return
    raise m.refuse(call, first, "no operator of the source has these weights, parameters and inputs")


@rule("fully_connected", "fully_connected16")
def fully_connected(m: Any, call: Any, first: int, last: int) -> None:
    """Match vectors times constant weights; the call's multipliers are proved to round as doubles do."""
    x, o = call.operands["input"], call.output
    wide = call.kernel in WIDE
    if (x.batch, x.height, x.width) != (o.batch, o.height, o.width) or call.rounding not in ((3,) if wide else (2, 3)):
        raise m.refuse(call, first, "its shapes or rounding are none of a fully connected layer")
    rows = _once(m, call, lambda: _channels(m, call, lambda: _dense(m, call, 1, x.channels, 1)))
    common = _common(call)

    def fits(one: Computation) -> Any:
        if one.what["common"] != common or one.what["depth"] != x.channels:
            return None
        vectors = (o.batch * o.height * o.width, o.width) if o.batch == 1 else (o.batch * o.height * o.width,)
        if one.size not in [count * one.what["count"] * x.item for count in vectors]:
            return None
        plain = [(weights, bias) for weights, bias, _ in rows]
        wanted = [(weights, bias) for weights, bias, _ in one.what["rows"]]
        at = _slice_of(wanted, plain)  # type: ignore[arg-type]
        if at is None:
            return None
        low, top = (0, 0) if wide else (common[4] - common[3], common[5] - common[3])
        for (_, _, (factor, word)), (_, _, real) in zip(rows, one.what["rows"][at:], strict=False):
            key = ("rounds", real, call.rounding, factor, word, low, top)
            if wide:
                # Sums may be wider than 32 bits: only the exact double rounds equally.
                if not same_mantissa(real, factor, word) or not _LEAST53 <= word & 0xFF <= _MOST53:
                    return None
            elif key not in m.world.seen:
                if not rounds_as_double(real, call.rounding, factor, word, low, top):
                    return None
                m.world.seen.add(key)
        return ("vectors", at)

    mark = len(m.reads)
    for one, place in _places(m, call, "vectors", fits):
        depth, count = one.what["depth"] * x.item, one.what["count"] * x.item
        tags = one.what["tags"]
        rows_of = [(image, y) for image in range(o.batch) for y in range(first, last)]
        begin = row_starts(o, rows_of, o.width * count, one.size)
        if begin is None:
            continue
        starts = [(row, at // count) for row, at in zip(rows_of, begin, strict=True)]
        if all(m.row(call, "input", *at) == tags[v * depth : (v + o.width) * depth] for at, v in starts):
            m.remember_match(call, "vectors", one)
            for (image, y), v in starts:
                made = array("Q")
                for vector in range(v, v + o.width):
                    made.extend(one.part(vector * count + place[1] * x.item, o.channels * x.item))
                m.put(call, image, y, m.apply_fused_table(call, made))
            return
        m.forget(mark)
    raise m.refuse(call, first, "no operator of the source has these weights, parameters and inputs")


@rule("batch_matmul")
def matmul(m: Any, call: Any, first: int, last: int) -> None:
    """Match a product of two computed matrices; a matrix is one row of an operand."""
    p, o = call.params, call.output
    # The table of a fused function has unsigned bytes, whatever the types of the matrices.
    types = {o.dtype, *(call.operands[role].dtype for role in ("left", "right"))}
    if call.rounding != (_SINGLE if o.item == 2 else _DOUBLE) or len(types) != 1:
        raise m.refuse(call, first, "its rounding or types are none of a product of matrices")
    common = (
        DTYPES[o.dtype], p["transpose_left"], p["transpose_right"], p["left_zero"], p["right_zero"],
        p["multiplier"], p["shift"], p["output_zero"], p["clamp_low"], p["clamp_high"],
    )  # fmt: skip
    mark = len(m.reads)
    for one in m.candidates(call, "matmul"):
        out = one.what["out"]
        if one.what["common"] != common or (out[0] * out[1], out[2], out[3], out[4]) != o.shape or p["inner"] != out[1]:
            continue
        m.forget(mark)
        if all(
            _matrix_agrees(m, call, one, role, image, y)
            for role in ("left", "right")
            for image in range(o.batch)
            for y in range(first, last)
        ):
            size = one.what["matrix"]
            for image in range(o.batch):
                for y in range(first, last):
                    at = (image * o.height + y) * size
                    m.put(call, image, y, m.apply_fused_table(call, array("Q", one.part(at, size))))
            return
    raise m.refuse(call, first, "no operator of the source has these parameters and inputs")


def _matrix_agrees(m: Any, call: Any, one: Computation, role: str, image: int, y: int) -> bool:
    shape, tags = one.what[role]
    x, inner, of = call.operands[role], call.params[f"{role}_inner"], call.params["inner"]
    if (shape[0] * shape[1], shape[2], shape[3], shape[4]) != x.shape or inner != shape[1]:
        return False
    outer = 0 if shape[0] == 1 else image // of
    place = outer * inner + (0 if inner == 1 else image % of)
    row = 0 if x.height == 1 else y
    size = shape[3] * shape[4] * x.item
    at = (place * x.height + row) * size
    return bool(m.row(call, role, place, row) == tags[at : at + size])
