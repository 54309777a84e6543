"""Rules of kernels that move bytes."""

from __future__ import annotations

from array import array
from itertools import product
from math import prod
from typing import Any

from openneutron.certify.kernels import rule
from openneutron.certify.operators.moves import Dimension, checked_indices, pick_slices, replace_box
from openneutron.certify.refused import Refused
from openneutron.certify.world import gather_elements


@rule("pad")
def pad(m: Any, call: Any, first: int, last: int) -> None:
    """Surround the input with a frame of one value."""
    p, x, y = call.params, call.operands["input"], call.output
    # The bytes of one element: rows have one tag per byte.
    fill = array("Q", list((p["value"] & ((1 << 8 * x.item) - 1)).to_bytes(x.item, "little")))
    left, depth = p["before_width"], p["before_channels"]
    if left + x.width > y.width or depth + x.channels > y.channels or x.item != y.item:
        raise m.refuse(call, first, "the frame is smaller than the input, or of another type")
    pixel = x.channels * x.item
    for image in range(y.batch):
        for row in range(first, last):
            n, iy = image - p["before_batch"], row - p["before_height"]
            if not (0 <= n < x.batch and 0 <= iy < x.height):
                m.put(call, image, row, fill * (y.width * y.channels))
                continue
            inner = m.row(call, "input", n, iy)
            made = fill * (left * y.channels)
            if y.channels == x.channels:
                made.extend(inner)
            else:
                for at in range(0, len(inner), pixel):
                    made.extend(fill * depth)
                    made.extend(inner[at : at + pixel])
                    made.extend(fill * (y.channels - depth - x.channels))
            made.extend(fill * (y.width * y.channels - len(made) // x.item))
            m.put(call, image, row, made)


@rule("slice")
def slice_(m: Any, call: Any, first: int, last: int) -> None:
    """Output element i is input element first + i * step."""
    x, y = call.operands["input"], call.output
    start, step = call.params["first"], call.params["step"]
    for size, wanted, begin, by in zip(x.shape, y.shape, start, step, strict=True):
        if not (0 <= begin < size and 0 <= begin + (wanted - 1) * by < size):
            raise m.refuse(call, first, "it takes elements outside its input")
    for image in range(y.batch):
        for row in range(first, last):
            tags = m.row(call, "input", start[0] + image * step[0], start[1] + row * step[1])
            dims, strides = [y.width, y.channels], [step[2] * x.channels, step[3]]
            m.put(call, image, row, gather_elements(tags, x.item, dims, strides, start[2] * x.channels + start[3]))


@rule("copy", flat=True)
def copy(m: Any, call: Any, first: int, last: int) -> None:
    """Copy elements in nested loops with strides on both sides, counted in elements."""
    p, o, item = call.params, call.output, call.output.item
    if call.operands["input"].item != item:
        raise m.refuse(call, first, "input and output have elements of different sizes")
    dims, reads, writes = p["dims"], p["input_strides"], p["output_strides"]
    if min(dims) < 1 or prod(dims) > prod(o.shape):
        raise m.refuse(call, first, "the loops write more than the output holds")
    low = p["input_offset"] + sum(min((n - 1) * s, 0) for n, s in zip(dims, reads, strict=True))
    top = p["input_offset"] + sum(max((n - 1) * s, 0) for n, s in zip(dims, reads, strict=True)) + 1
    if low < 0 or min(writes) < 0 or p["output_offset"] < 0:
        raise m.refuse(call, first, "the loops leave an operand")
    source = m.flat(call, "input", low * item, (top - low) * item)
    tags = gather_elements(source, item, dims, reads, p["input_offset"] - low)
    end = p["output_offset"] + sum((n - 1) * s for n, s in zip(dims, writes, strict=True)) + 1
    if o.offset + end * item > m.program.sizes.get((o.region, o.index), 0):
        raise Refused(f"copy: output leaves {o.region}", call.at)
    run, step = dims[-1], writes[-1]
    pieces = [(0, run)] if step == 1 else [(i * step, 1) for i in range(run)]
    at = 0
    for place in product(*(range(n) for n in dims[:-1])):
        start = p["output_offset"] + sum(i * s for i, s in zip(place, writes, strict=False))
        for offset, count in pieces:
            to, size = o.offset + (start + offset) * item, count * item
            m.writes.append(((o.region, o.index, to, to + size), tags[at : at + size]))
            at += size


@rule("gather", flat=True)
def gather(m: Any, call: Any, first: int, last: int) -> None:
    """Copy the slices that the indices select."""
    p = call.params
    params = (p["batches"], p["outer"], p["axis"], p["count"], p["slice_bytes"])
    if min(params) < 1 or call.operands["indices"].item not in (4, 8):
        raise m.refuse(call, first, "its sizes make no sense")
    item = call.operands["indices"].item
    source = m.flat(call, "input", 0, params[0] * params[1] * params[2] * params[4])
    indices = m.flat(call, "indices", 0, params[0] * params[3] * item)
    made = pick_slices(m.world, params, source, indices, item)
    _write_flat(m, call, first, made)


@rule("check_indices", flat=True)
def check_indices(m: Any, call: Any, first: int, last: int) -> None:
    """Pass indices on that an operator of the source limits so."""
    p, o = call.params, call.output
    item, count, period = call.operands["indices"].item, p["count"], p["period"]
    if item not in (4, 8) or item != o.item or not 1 <= period <= len(p["limits"]) or count < 1:
        raise m.refuse(call, first, "its sizes make no sense")
    tags = m.flat(call, "indices", 0, count * item)
    made = checked_indices(m.world, tags, item, tuple(p["limits"][:period]), add=False)
    if not made:
        raise m.refuse(call, first, "no operator of the source has these indices and limits")
    _write_flat(m, call, first, made)


@rule("update_slice", flat=True)
def update_slice(m: Any, call: Any, first: int, last: int) -> None:
    """Replace a box of a tensor, which may be the same bytes as the result."""
    p, item = call.params, call.operands["starts"].item
    if item not in (4, 8) or p["slice_bytes"] < 1:
        raise m.refuse(call, first, "its sizes make no sense")
    dims = []
    for size, box, entry in zip(p["dims"], p["box"], p["entry"], strict=True):
        if not 1 <= box <= size or (entry < 0 and box != size):
            raise m.refuse(call, first, "its box is empty, leaves the tensor or has no place")
        start = m.flat(call, "starts", entry * item, item) if entry >= 0 else array("Q")
        dims.append(Dimension(size, box, start))
    whole = prod(p["dims"]) * p["slice_bytes"]
    source = m.flat(call, "update", 0, prod(p["box"]) * p["slice_bytes"])
    tags = m.read_state(call, "input", whole)
    _write_flat(m, call, first, replace_box(m.world, dims, p["slice_bytes"], tags, source))


def _write_flat(m: Any, call: Any, first: int, made: array[int]) -> None:
    o = call.output
    if len(made) > prod(o.shape) * o.item or o.offset + len(made) > m.program.sizes.get((o.region, o.index), 0):
        raise m.refuse(call, first, "it writes more than the output holds")
    m.writes.append(((o.region, o.index, o.offset, o.offset + len(made)), made))


@rule("resize_nearest")
def resize_nearest(m: Any, call: Any, first: int, last: int) -> None:
    """Copy the rows and columns that the tables select."""
    x, y = call.operands["input"], call.output
    tables = []
    for role, count, size in (("rows", y.height, x.height), ("columns", y.width, x.width)):
        data = m.read_constant(call, role, 4 * count)
        numbers = [int.from_bytes(data[4 * at : 4 * at + 4], "little", signed=True) for at in range(count)]
        if any(not 0 <= one < size for one in numbers):
            raise m.refuse(call, first, f"a table of {role} leaves the image")
        tables.append(numbers)
    width = x.channels * x.item
    if (x.batch, x.channels, x.dtype, call.params["item"]) != (y.batch, y.channels, y.dtype, x.item):
        raise m.refuse(call, first, "batch or channels differ")
    for image in range(y.batch):
        for row in range(first, last):
            tags = m.row(call, "input", image, tables[0][row])
            made = array("Q")
            for column in tables[1]:
                made.extend(tags[column * width : (column + 1) * width])
            m.put(call, image, row, made)
