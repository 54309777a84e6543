"""Rules of element-wise kernels, pools, reductions and interpolation."""

from __future__ import annotations

from array import array
from functools import lru_cache
from typing import Any

from openneutron.certify.kernels import rule
from openneutron.certify.numbers import clamp, limits, rescale
from openneutron.certify.operators.elements import group_by_output, rows_between
from openneutron.certify.operators.unary import apply_wide, table_of, wide_rescaling
from openneutron.certify.read.microcode import DTYPES
from openneutron.certify.tags import digest
from openneutron.certify.world import Computation, gather_elements


@rule("lut", elementwise=True)
def lut(m: Any, call: Any, first: int, last: int) -> None:
    """Apply a table of 256 entries to each byte."""
    if call.params["entries"] != 256:
        raise m.refuse(call, first, f"a table of {call.params['entries']} entries")
    table = m.read_constant(call, "table", 256)
    _apply_table(m, call, first, last, table)


@rule("requantize", elementwise=True)
def requantize(m: Any, call: Any, first: int, last: int) -> None:
    """Apply a rescaling: of 8-bit values as a table of 256 bytes, of 16-bit values as a function of one element."""
    p = call.params
    if call.rounding != 1 or not -31 <= p["shift"] <= 31:
        raise m.refuse(call, first, "its rounding or shift is none of a requantize")
    given, made = DTYPES[call.operands["input"].dtype], DTYPES[call.output.dtype]
    zeros, factor, ends = (
        (p["input_zero"], p["output_zero"]),
        (p["multiplier"], p["shift"]),
        (p["clamp_low"], p["clamp_high"]),
    )
    low, top = limits(made)
    if not low <= ends[0] <= ends[1] <= top:
        raise m.refuse(call, first, f"it cuts {made} to {ends[0]} … {ends[1]}")
    if {given, made} <= {"INT8", "INT16"} and "INT16" in (given, made):
        _apply_wide_function(m, call, first, last, wide_rescaling(given, made, zeros, factor, ends))
        return
    if {given, made} - {"INT8", "UINT8"}:
        raise m.refuse(call, first, f"it rescales {given} to {made}")
    _apply_table(m, call, first, last, _rescaling_table(given, made, zeros, factor, ends))


@lru_cache(maxsize=256)
def _rescaling_table(
    given: str, made: str, zeros: tuple[int, int], factor: tuple[int, int], ends: tuple[int, int]
) -> bytes:
    return table_of(lambda q: clamp(rescale(q - zeros[0], *factor) + zeros[1], *ends), given, made)


def _apply_wide_function(m: Any, call: Any, first: int, last: int, meaning: Any) -> None:
    """Write a function of one element with 16-bit input or output; an operator of the source must have the same function."""
    x, o = call.operands["input"], call.output
    if x.shape != o.shape:
        raise m.refuse(call, first, "input and output differ in shape")
    if ("function", meaning) not in m.world.seen:
        raise m.refuse(call, first, "no operator of the source is this function of one element")
    for image in range(o.batch):
        for y in range(first, last):
            m.put(call, image, y, apply_wide(m.world, meaning, m.row(call, "input", image, y), x.item, o.item))


@rule("lut16", elementwise=True)
def lut16(m: Any, call: Any, first: int, last: int) -> None:
    """Match interpolation in a 16-bit table."""
    p = call.params
    if {DTYPES[call.operands["input"].dtype], DTYPES[call.output.dtype]} != {"INT16"}:
        raise m.refuse(call, first, "input and output are not INT16")
    meaning = ("lut16", m.read_constant(call, "table", 512), p["tangent"], p["multiplier"], p["shift"])
    _apply_wide_function(m, call, first, last, meaning)


def _apply_table(m: Any, call: Any, first: int, last: int, table: bytes) -> None:
    x, o = call.operands["input"], call.output
    if x.shape != o.shape or x.item != 1 or o.item != 1:
        raise m.refuse(call, first, "input and output differ in shape")
    for image in range(o.batch):
        for y in range(first, last):
            m.put(call, image, y, m.world.symbols.apply_table(m.row(call, "input", image, y), table))


def _wide(m: Any, call: Any, role: str, image: int, y: int) -> array[int]:
    """Return a row of an input, broadcast to the width and channels of the output."""
    x, o = call.operands[role], call.output
    if any(a not in (1, b) for a, b in zip(x.shape, o.shape, strict=True)):
        raise m.refuse(call, y, f"{role} does not broadcast to the output")
    tags: array[int] = m.row(call, role, 0 if x.batch == 1 else image, 0 if x.height == 1 else y)
    if (x.width, x.channels) == (o.width, o.channels):
        return tags
    strides = [0 if x.width == 1 else x.channels, 0 if x.channels == 1 else 1]
    return gather_elements(tags, x.item, [o.width, o.channels], strides)


def row_starts(o: Any, rows: list[tuple[int, int]], size: int, whole: int) -> list[int] | None:
    """Return where output rows begin in an operator's result of `whole` elements; None if they are not part of it.

    A rolled recurrent layer writes one row per step, and each step is an operator of its own.
    """
    if whole == size * o.batch * o.height:
        return [(image * o.height + y) * size for image, y in rows]
    return [0] if o.batch == len(rows) == 1 and whole == size else None


@rule("add", "add16", "mul", "minmax", "prelu", "squared_difference", elementwise=True)
def binary(m: Any, call: Any, first: int, last: int) -> None:
    """Match an element-wise kernel on two tensors."""
    roles = ("input", "slope") if call.kernel == "prelu" else ("input1", "input2")
    o = call.output
    kinds = {call.operands[role].dtype for role in (*roles, "output")}
    if len(kinds) != 1:
        raise m.refuse(call, first, "its operands differ in type")
    meaning = (call.kernel, tuple(sorted(call.params.items())), call.rounding, DTYPES[o.dtype])
    rows = [(image, y) for image in range(o.batch) for y in range(first, last)]
    sides = [[_wide(m, call, role, image, y) for image, y in rows] for role in roles]
    size = o.width * o.channels * o.item
    for one in m.candidates(call, "elements"):
        starts = row_starts(o, rows, size, one.size)
        if one.what["meaning"] != meaning or starts is None:
            continue
        if all(
            one.what["left"][at : at + size] == a and one.what["right"][at : at + size] == b
            for at, a, b in zip(starts, *sides, strict=True)
        ):
            m.remember_match(call, "elements", one)
            for (image, y), at in zip(rows, starts, strict=True):
                m.put(call, image, y, array("Q", one.part(at, size)))
            return
    raise m.refuse(call, first, "no operator of the source has these parameters and inputs")


@rule("softmax", "softmax16", elementwise=True)
def softmax(m: Any, call: Any, first: int, last: int) -> None:
    """Match a softmax over the channels."""
    x, o, p = call.operands["input"], call.output, call.params
    meaning: tuple[Any, ...]
    if call.kernel == "softmax16":
        meaning = (DTYPES[o.dtype], m.read_constant(call, "table", 2052), p["multiplier"], p["shift"])
    else:
        table = m.read_constant(call, "table", 1024)
        meaning = (table, p["output_zero"], p["clamp_low"], p["clamp_high"], DTYPES[o.dtype])
    if x.dtype != o.dtype:
        raise m.refuse(call, first, "input and output differ in type")
    rows = [(image, y) for image in range(o.batch) for y in range(first, last)]
    given = [m.row(call, "input", image, y) for image, y in rows]
    size = o.width * o.channels * o.item
    for one in m.candidates(call, "softmax"):
        if one.what["meaning"] != meaning or one.what["depth"] != o.channels or x.shape != o.shape:
            continue
        starts = [(image * o.height + y) * size for image, y in rows]
        if one.size == size * o.batch * o.height and all(
            one.what["tags"][at : at + size] == tags for at, tags in zip(starts, given, strict=True)
        ):
            m.remember_match(call, "softmax", one)
            for (image, y), at in zip(rows, starts, strict=True):
                m.put(call, image, y, m.apply_fused_table(call, array("Q", one.part(at, size))))
            return
    raise m.refuse(call, first, "no operator of the source has this table, these parameters and inputs")


def _line(one: Computation, image: int, y: int) -> array[int]:
    _, h, w, c = one.what["shape"]
    size = w * c * one.what["item"]
    at = (image * h + y) * size
    tags: array[int] = one.what["tags"][at : at + size]
    return tags


@rule("max_pool2d", "avg_pool2d")
def pool(m: Any, call: Any, first: int, last: int) -> None:
    """Match a pooling window on stored values; positions outside the image do not count."""
    p, x, o = call.params, call.operands["input"], call.output
    names = ("kernel_h", "kernel_w", "stride_h", "stride_w", "pad_top", "pad_left")
    geometry = tuple(p[name] for name in names)
    meaning = (call.kernel, geometry, p["clamp_low"], p["clamp_high"], DTYPES[o.dtype])
    if x.dtype != o.dtype:
        raise m.refuse(call, first, "input and output differ in type")
    rows = [(image, y) for image in range(o.batch) for y in range(first, last)]
    mark = len(m.reads)
    for one in m.candidates(call, "pool"):
        if one.what["meaning"] != meaning or one.what["shape"] != x.shape or one.what["out"] != o.shape:
            continue
        m.forget(mark)
        agree = all(
            m.row(call, "input", image, at) == _line(one, image, at)
            for image, y in rows
            for at in range(
                max(y * p["stride_h"] - p["pad_top"], 0),
                min(y * p["stride_h"] - p["pad_top"] + p["kernel_h"], x.height),
            )
        )
        if agree:
            m.remember_match(call, "pool", one)
            size = o.width * o.channels * o.item
            for image, y in rows:
                at = (image * o.height + y) * size
                m.put(call, image, y, m.apply_fused_table(call, array("Q", one.part(at, size))))
            return
    whole = (p["kernel_h"], p["kernel_w"], p["pad_top"], p["pad_left"]) == (x.height, x.width, 0, 0)
    if call.kernel == "avg_pool2d" and whole and o.shape == (1, 1, 1, x.channels):
        _match_reduction(m, call, (_plain_mean(p), 0, b"", DTYPES[x.dtype]), {1, 2}, [(0, 0)])
        return
    raise m.refuse(call, first, "no operator of the source has this window and these inputs")


def _plain_mean(p: Any) -> tuple[tuple[str, int], ...]:
    """Return the parameters of a mean whose output has the scale of its input."""
    return ("clamp_high", p["clamp_high"]), ("clamp_low", p["clamp_low"])


@rule("pool_sum")
def pool_sum(m: Any, call: Any, first: int, last: int) -> None:
    """Match running sums of rows 0 … y with the pixels of a mean of the source."""
    x, o = call.operands["input"], call.output
    fits = x.batch == o.batch == 1 and x.height == o.height and x.channels == o.channels and o.ring == 1
    if not fits or call.params["kernel_w"] != x.width or o.item != 4 or o.width != 1 or DTYPES[o.dtype] != "INT32":
        raise m.refuse(call, first, "its shapes are none of running sums")
    size = x.width * x.channels * x.item
    for one in m.candidates(call, "reduce"):
        if one.what["count"] != x.height * x.width or one.what["meaning"][3] != DTYPES[x.dtype]:
            continue
        pixels = _pixels(one)
        if len(pixels) != x.height * size:
            continue
        if any(m.row(call, "input", 0, y) != pixels[y * size : (y + 1) * size] for y in range(first, last)):
            continue
        if first > 0 and m.row(call, "output", 0, 0) != _sums(m, one, first * x.width):
            continue
        m.remember_match(call, "reduce", one)
        m.put(call, 0, 0, _sums(m, one, last * x.width))
        return
    raise m.refuse(
        call, first, f"these are not the {4 * x.channels} bytes of sums that a mean of the source begins with"
    )


def _pixels(one: Computation) -> array[int]:
    """Return the elements that a reduction reads: the first element of every output, then the second of every output, …."""
    if "pixels" not in one.what:
        item, count = one.what["item"], one.what["count"]
        outputs = len(one.what["tags"]) // (count * item)
        one.what["pixels"] = gather_elements(one.what["tags"], item, [count, outputs], [1, count])
    pixels: array[int] = one.what["pixels"]
    return pixels


def _sums(m: Any, one: Computation, count: int) -> array[int]:
    """Return the tags of the sums of the first `count` elements of each output."""
    if "digest" not in one.what:
        one.what["digest"] = digest(_pixels(one))
    size = 4 * (len(_pixels(one)) // (one.what["count"] * one.what["item"]))
    base = m.world.symbols.block(("sums", one.what["meaning"][3], size, one.what["digest"]), size * one.what["count"])
    return array("Q", range(base + size * (count - 1), base + size * count))


@rule("pool_mean")
def pool_mean(m: Any, call: Any, first: int, last: int) -> None:
    """Match the mean that is computed from the sums of all rows."""
    p = dict(call.params)
    count, o = p.pop("count"), call.output
    if call.rounding == 0:
        if p["offset"] or p["multiplier"] or p["shift"] or p["output_zero"]:
            raise m.refuse(call, first, "a plain mean has no scale")
        params = _plain_mean(p)
    else:
        params = tuple(sorted((p | {"mode": 0}).items()))
    given = m.row(call, "input", 0, 0)
    for one in m.candidates(call, "reduce"):
        fits = one.what["meaning"] == (params, call.rounding, b"", DTYPES[o.dtype]) and one.what["count"] == count
        if fits and given == _sums(m, one, count):
            m.remember_match(call, "reduce", one)
            m.put(call, 0, 0, m.apply_fused_table(call, array("Q", one.part(0, one.size))))
            return
    raise m.refuse(call, first, "no operator of the source is the mean of these sums with these parameters")


def _same_boxes(one: Computation, starts: list[int], size: int, boxes: list[tuple[array[int], int]], item: int) -> bool:
    """Return whether these output rows read the same elements as the operator's."""
    tags, count = one.what["tags"], one.what["count"] * item
    pairs = zip(starts, boxes, strict=True)
    return all(n * item == count and tags[at * count : (at + size) * count] == found for at, (found, n) in pairs)


def _boxes(m: Any, call: Any, image: int, y: int, axes: set[int]) -> tuple[array[int], int]:
    """Return the elements that each output of a row reads, one output after the other, and how many each reads."""
    x = call.operands["input"]
    images = range(x.batch) if 0 in axes else (image,)
    rows = range(x.height) if 1 in axes else (y,)
    tags = array("Q")
    for n in images:
        for at in rows:
            tags.extend(m.row(call, "input", n, at))
    shape = (len(images), len(rows), x.width, x.channels)
    count = 1
    for axis in axes:
        count *= shape[axis]
    return group_by_output(tags, shape, axes, x.item), count


@rule("reduce")
def reduce(m: Any, call: Any, first: int, last: int) -> None:
    """Match a sum, mean, maximum or minimum over any dimensions."""
    p, x, o = dict(call.params), call.operands["input"], call.output
    axes = {axis for axis in range(4) if p["axes"] >> axis & 1}
    if (
        any(b != (1 if at in axes else a) for at, (a, b) in enumerate(zip(x.shape, o.shape, strict=True)))
        or p["axes"] > 15
    ):
        raise m.refuse(call, first, "its output does not follow from its axes")
    steps = m.read_constant(call, "steps", 1020) if call.operands["steps"].present else b""
    del p["axes"]
    if p["mode"] in (1, 2):
        p = {"mode": p["mode"]}
    elif steps:
        p = {"mode": 0, "clamp_low": p["clamp_low"]}
    meaning = (tuple(sorted(p.items())), call.rounding, steps, DTYPES[x.dtype])
    _match_reduction(m, call, meaning, axes, [(image, y) for image in range(o.batch) for y in range(first, last)])


def _match_reduction(m: Any, call: Any, meaning: Any, axes: set[int], rows: list[tuple[int, int]]) -> None:
    """Find the reduction that reads the same bytes with the same parameters, and write its rows."""
    x, o = call.operands["input"], call.output
    size = o.width * o.channels
    boxes = [_boxes(m, call, image, y, axes) for image, y in rows]
    for one in m.candidates(call, "reduce"):
        if one.what["meaning"] != meaning or one.size != size * o.item * o.batch * o.height or x.dtype != o.dtype:
            continue
        starts = [(image * o.height + y) * size for image, y in rows]
        if _same_boxes(one, starts, size, boxes, x.item):
            m.remember_match(call, "reduce", one)
            for (image, y), at in zip(rows, starts, strict=True):
                m.put(call, image, y, m.apply_fused_table(call, array("Q", one.part(at * o.item, size * o.item))))
            return
    raise m.refuse(call, rows[0][1], "no operator of the source reduces these bytes with these parameters")


@rule("arg_max")
def arg_max(m: Any, call: Any, first: int, last: int) -> None:
    """Match the index of the first largest or smallest value."""
    x, o, axis = call.operands["input"], call.output, call.params["axis"]
    if not 0 <= axis <= 3 or any(
        b != (1 if at == axis else a) for at, (a, b) in enumerate(zip(x.shape, o.shape, strict=True))
    ):
        raise m.refuse(call, first, "its output does not follow from its axis")
    meaning = (call.params["sign"], DTYPES[x.dtype], DTYPES[o.dtype])
    size = o.width * o.channels
    rows = [(image, y) for image in range(o.batch) for y in range(first, last)]
    boxes = [_boxes(m, call, image, y, {axis}) for image, y in rows]
    for one in m.candidates(call, "arg_max"):
        item = one.what["item"]
        if one.what["meaning"] != meaning or one.size != size * item * o.batch * o.height:
            continue
        starts = [(image * o.height + y) * size for image, y in rows]
        if _same_boxes(one, starts, size, boxes, x.item):
            for (image, y), at in zip(rows, starts, strict=True):
                m.put(call, image, y, array("Q", one.part(at * item, size * item)))
            return
    raise m.refuse(call, first, "no operator of the source searches these bytes")


@rule("resize_bilinear")
def resize_bilinear(m: Any, call: Any, first: int, last: int) -> None:
    """Match bilinear interpolation between four neighbours."""
    p, x, o = call.params, call.operands["input"], call.output
    dtype = DTYPES[x.dtype]
    meaning = (p["scale_height"], p["scale_width"], p["half_pixel"], dtype)
    rows = [(image, y) for image in range(o.batch) for y in range(first, last)]
    mark = len(m.reads)
    for one in m.candidates(call, "bilinear"):
        if (one.what["meaning"], one.what["shape"], one.what["out"]) != (
            meaning,
            x.shape,
            o.shape,
        ) or x.dtype != o.dtype:
            continue
        m.forget(mark)
        if all(
            m.row(call, "input", image, at) == _line(one, image, at)
            for image, y in rows
            for at in rows_between(y, p["scale_height"], p["half_pixel"], x.height, dtype)
        ):
            size = o.width * o.channels * o.item
            for image, y in rows:
                at = (image * o.height + y) * size
                m.put(call, image, y, array("Q", one.part(at, size)))
            return
    raise m.refuse(call, first, "no operator of the source interpolates these bytes with these parameters")
