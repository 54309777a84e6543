"""Rules of operators that only move bytes: their outputs are the tags of their inputs in another order."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from itertools import product
from math import prod

from openneutron.certify.numbers import clamp, f32, round_away
from openneutron.certify.operators import Context, axis_of, rule
from openneutron.certify.read.litert import Tensor
from openneutron.certify.tags import constant, digest, fill_tags, value_of
from openneutron.certify.world import World, dense, gather_elements

_KINDS = ("INT8", "UINT8", "INT16")


@rule("RESHAPE", "SQUEEZE", "EXPAND_DIMS")
def reshape(c: Context) -> list[array[int]] | None:
    """Return the same bytes."""
    return [c.tags(0)] if len(c.tags(0)) == c.out.size else None


@rule("TRANSPOSE")
def transpose(c: Context) -> list[array[int]] | None:
    """Return the dimensions in another order."""
    shape, order = c.tensor(0).shape, c.numbers(1)
    if order is None:
        return None
    order = [axis_of(one, len(shape)) for one in order]
    if sorted(order) != list(range(len(shape))):
        return None
    strides = dense(shape)
    return [gather_elements(c.tags(0), c.out.item, [shape[o] for o in order], [strides[o] for o in order])]


@rule("SLICE")
def slice_(c: Context) -> list[array[int]] | None:
    """Return a box of the input."""
    shape, begin, size = c.tensor(0).shape, c.numbers(1), c.numbers(2)
    if begin is None or size is None or not len(begin) == len(size) == len(shape):
        return None
    counts = [n - b if s == -1 else s for n, b, s in zip(shape, begin, size, strict=True)]
    if any(b < 0 or k < 0 or b + k > n for n, b, k in zip(shape, begin, counts, strict=True)):
        return None
    strides = dense(shape)
    start = sum(b * s for b, s in zip(begin, strides, strict=True))
    return [gather_elements(c.tags(0), c.out.item, counts, strides, start)]


@rule("STRIDED_SLICE")
def strided_slice(c: Context) -> list[array[int]] | None:
    """Return a box of the input with steps, by numpy's rules."""
    shape, begin, end, step = c.tensor(0).shape, c.numbers(1), c.numbers(2), c.numbers(3)
    o = c.op.options
    if begin is None or end is None or step is None or o.get("Offset") or 0 in step:
        return None
    masks = [o.get(name, 0) for name in ("BeginMask", "EndMask", "ShrinkAxisMask", "EllipsisMask", "NewAxisMask")]
    named = sum(1 for at in range(len(begin)) if not (masks[3] | masks[4]) >> at & 1)
    cuts: list[tuple[int, int, int]] = []  # first, step, count
    for at in range(len(begin)):
        if masks[3] >> at & 1:
            cuts += [(0, 1, size) for size in shape[len(cuts) : len(cuts) + len(shape) - named]]
            continue
        if masks[4] >> at & 1:
            continue
        if len(cuts) >= len(shape):
            return None
        size = shape[len(cuts)]
        if masks[2] >> at & 1:
            first = begin[at] + size if begin[at] < 0 else begin[at]
            if not 0 <= first < size:
                return None
            cuts.append((first, 1, 1))
            continue
        picked = range(size)[
            slice(None if masks[0] >> at & 1 else begin[at], None if masks[1] >> at & 1 else end[at], step[at])
        ]
        cuts.append((picked.start, picked.step, len(picked)))
    cuts += [(0, 1, size) for size in shape[len(cuts) :]]
    strides = dense(shape)
    counts = [count for _, _, count in cuts]
    if prod(counts) * c.out.item != c.out.size:
        return None
    steps = [each * s for (_, each, _), s in zip(cuts, strides, strict=True)]
    start = sum(first * s for (first, _, _), s in zip(cuts, strides, strict=True))
    return [gather_elements(c.tags(0), c.out.item, counts, steps, start)]


@rule("PAD", "PADV2")
def pad(c: Context) -> list[array[int]] | None:
    """Surround the input with a frame of one value, by default the zero point."""
    shape, borders = c.tensor(0).shape, c.numbers(1)
    if borders is None or len(borders) != 2 * len(shape) or min(borders, default=0) < 0 or c.out.dtype not in _KINDS:
        return None
    fill = _zero(c.out) if c.op.code == "PAD" else c.tags(2)
    return [pad_tensor(c.tags(0), shape, borders[::2], c.out.shape, fill)] if len(fill) == c.out.item else None


def _zero(tensor: Tensor) -> array[int]:
    """Return one element that holds the zero point."""
    return constant((tensor.quantization[1] % (1 << 8 * tensor.item)).to_bytes(tensor.item, "little"))


def pad_tensor(
    tags: array[int], shape: tuple[int, ...], before: list[int], outer: tuple[int, ...], fill: array[int]
) -> array[int]:
    """Place a tensor inside a larger one that is filled with the element `fill`."""
    made, item = fill * prod(outer), len(fill)
    strides = dense(outer)
    if not shape or 0 in shape:
        return made
    row = shape[-1]
    inner = dense(shape)
    for start in range(0, prod(shape), row):
        at, rest = before[-1], start
        for axis in range(len(shape) - 1):
            place, rest = divmod(rest, inner[axis])
            at += (place + before[axis]) * strides[axis]
        made[at * item : (at + row) * item] = tags[start * item : (start + row) * item]
    return made


@rule("MIRROR_PAD")
def mirror_pad(c: Context) -> list[array[int]] | None:
    """Extend the input by reflecting its edges."""
    shape, borders = c.tensor(0).shape, c.numbers(1)
    if borders is None or len(borders) != 2 * len(shape):
        return None
    edge = 1 if c.op.options.get("Mode", 0) == 0 else 0
    tables = []
    for size, low, top in zip(shape, borders[::2], borders[1::2], strict=True):
        if max(low, top) > size - edge:
            return None
        front = [edge + low - 1 - i for i in range(low)]
        tables.append([*front, *range(size), *(size - 1 - edge - i for i in range(top))])
    return [pick_elements(c.tags(0), c.out.item, shape, tables)]


def pick_elements(tags: array[int], item: int, shape: tuple[int, ...], tables: list[list[int]]) -> array[int]:
    """Return the elements whose index along each dimension comes from a table."""
    made, current = tags, list(shape)
    for axis, table in enumerate(tables):
        if table == list(range(current[axis])):
            continue
        inner = prod(current[axis + 1 :]) * item
        block = current[axis] * inner
        moved = array("Q")
        for start in range(0, len(made), block) if block else ():
            for index in table:
                moved.extend(made[start + index * inner : start + (index + 1) * inner])
        made, current[axis] = moved, len(table)
    return made


@rule("RESIZE_NEAREST_NEIGHBOR")
def resize_nearest(c: Context) -> list[array[int]] | None:
    """Return the nearest input pixel for each output pixel."""
    x, y = c.tensor(0).shape, c.out.shape
    if len(x) != 4 or len(y) != 4:
        return None
    align, half = bool(c.op.options.get("AlignCorners")), bool(c.op.options.get("HalfPixelCenters"))
    tables = [list(range(x[0])), nearest(x[1], y[1], align, half), nearest(x[2], y[2], align, half), list(range(x[3]))]
    return [pick_elements(c.tags(0), c.out.item, x, tables)]


def nearest(size: int, wanted: int, align: bool, half: bool) -> list[int]:
    """Return the source index of each output position."""
    scale = f32((size - 1) / (wanted - 1)) if align and wanted > 1 else f32(size / wanted)
    found = []
    for i in range(wanted):
        at = f32(f32(i + (0.5 if half else 0.0)) * scale)
        found.append(clamp(round_away(at) if align else int(at // 1), 0, size - 1))
    return found


@rule("CONCATENATION")
def concatenation(c: Context) -> list[array[int]] | None:
    """Concatenate the inputs; UINT8 inputs with other quantization are rescaled in float32."""
    if c.op.options.get("FusedActivationFunction", 0):
        return None
    parts = []
    for position in range(len(c.op.inputs)):
        tensor, tags = c.tensor(position), c.tags(position)
        if tensor.dtype == "UINT8" and tensor.quantization != c.out.quantization:
            tags = c.world.symbols.apply_table(tags, _float_table(tensor.quantization, c.out.quantization))
        parts.append((tensor.shape, tags))
    return [concatenate(parts, c.op.options.get("Axis", 0), c.out.item)]


def _float_table(given: tuple[float, int], wanted: tuple[float, int]) -> bytes:
    factor = f32(given[0] * f32(1.0 / wanted[0]))
    bias = f32(-given[1] * factor)
    return bytes(clamp(round_away(f32(f32(q * factor) + bias)) + wanted[1], 0, 255) for q in range(256))


def concatenate(parts: list[tuple[tuple[int, ...], array[int]]], axis: int, item: int) -> array[int]:
    """Concatenate tensors along an axis."""
    rank = len(parts[0][0])
    axis %= rank
    outer = prod(parts[0][0][:axis])
    made = array("Q")
    sizes = [prod(shape[axis:]) * item for shape, _ in parts]
    for at in range(outer):
        for (_, tags), size in zip(parts, sizes, strict=True):
            made.extend(tags[at * size : (at + 1) * size])
    return made


@rule("PACK")
def pack(c: Context) -> list[array[int]] | None:
    """Stack the inputs along a new axis."""
    rank = len(c.out.shape)
    axis = c.op.options.get("Axis", 0) % rank
    parts = []
    for position in range(len(c.op.inputs)):
        shape = c.tensor(position).shape
        parts.append(((*shape[:axis], 1, *shape[axis:]), c.tags(position)))
    return [concatenate(parts, axis, c.out.item)]


@rule("SPLIT", "SPLIT_V", "UNPACK")
def split(c: Context) -> list[array[int]] | None:
    """Split the input along an axis."""
    data = 1 if c.op.code == "SPLIT" else 0
    x = c.tensor(data)
    if c.op.code == "UNPACK":
        axis, sizes = c.op.options.get("Axis", 0), [1] * len(c.op.outputs)
    else:
        axes = c.numbers(0 if c.op.code == "SPLIT" else 2)
        if axes is None:
            return None
        axis = axes[0]
    axis %= len(x.shape)
    if c.op.code == "SPLIT":
        sizes = [x.shape[axis] // len(c.op.outputs)] * len(c.op.outputs)
    elif c.op.code == "SPLIT_V":
        given = c.numbers(1)
        if given is None:
            return None
        sizes = [x.shape[axis] - sum(one for one in given if one >= 0) if s == -1 else s for s in given]
    if sum(sizes) != x.shape[axis]:
        return None
    strides, start, made = dense(x.shape), 0, []
    for size in sizes:
        dims = [*x.shape[:axis], size, *x.shape[axis + 1 :]]
        made.append(gather_elements(c.tags(data), x.item, dims, strides, start * strides[axis]))
        start += size
    return made


@rule("TILE")
def tile(c: Context) -> list[array[int]] | None:
    """Repeat a tensor along each dimension."""
    times, shape = c.numbers(1), c.tensor(0).shape
    if times is None or len(times) != len(shape):
        return None
    return [
        pick_elements(c.tags(0), c.out.item, shape, [list(range(n)) * t for n, t in zip(shape, times, strict=True)])
    ]


@rule("BROADCAST_TO")
def broadcast_to(c: Context) -> list[array[int]] | None:
    """Repeat a tensor along its dimensions of size 1."""
    return [broadcast(c.tags(0), c.tensor(0).shape, c.out.shape, c.out.item)]


def broadcast(tags: array[int], shape: tuple[int, ...], wanted: tuple[int, ...], item: int = 1) -> array[int]:
    """Return the tensor broadcast to `wanted`, by numpy's rules."""
    full = (1,) * (len(wanted) - len(shape)) + tuple(shape)
    if full == tuple(wanted):
        return tags
    strides = [0 if size == 1 else step for size, step in zip(full, dense(full), strict=True)]
    return gather_elements(tags, item, list(wanted), strides)


@rule("DEPTH_TO_SPACE", "SPACE_TO_DEPTH")
def depth_space(c: Context) -> list[array[int]] | None:
    """Move blocks of pixels to channels, or back."""
    block = c.op.options.get("BlockSize", 0)
    x, y = c.tensor(0).shape, c.out.shape
    if block < 1 or len(x) != 4 or len(y) != 4:
        return None
    if c.op.code == "DEPTH_TO_SPACE":
        n, h, w, depth = x
        sizes = (n, h, w, block, block, depth // (block * block))
        order = (0, 1, 3, 2, 4, 5)
    else:
        n, h, w, depth = y
        sizes = (n, h, block, w, block, depth // (block * block))
        order = (0, 1, 3, 2, 4, 5)
    strides = dense(sizes)
    return [gather_elements(c.tags(0), c.out.item, [sizes[o] for o in order], [strides[o] for o in order])]


@rule("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND")
def batch_space(c: Context) -> list[array[int]] | None:
    """Move blocks of pixels to images, or back."""
    x, y, blocks, borders = c.tensor(0).shape, c.out.shape, c.numbers(1), c.numbers(2)
    if blocks is None or borders is None or c.out.dtype not in _KINDS:
        return None
    count = len(blocks)
    rest = prod(x[1 + count :])
    if c.op.code == "SPACE_TO_BATCH_ND":
        wide = [
            x[0],
            *(s + borders[2 * k] + borders[2 * k + 1] for k, s in enumerate(x[1 : 1 + count])),
            *x[1 + count :],
        ]
        before = [0, *borders[::2], *([0] * (len(x) - 1 - count))]
        fill = _zero(c.out)
        tags = pad_tensor(c.tags(0), x, before, tuple(wide), fill)
        spread = [wide[0]]
        for k, block in enumerate(blocks):
            spread += [wide[1 + k] // block, block]
        strides = dense([*spread, rest])
        dims = [*blocks, wide[0], *spread[1::2], rest]
        steps = [*strides[2 : 2 * count + 1 : 2], strides[0], *strides[1 : 2 * count : 2], strides[-1]]
        return [gather_elements(tags, c.out.item, dims, steps)]
    images = x[0] // prod(blocks)
    narrow = [*blocks, images, *x[1 : 1 + count], rest]
    strides = dense(narrow)
    dims, steps = [images], [strides[count]]
    for k, block in enumerate(blocks):
        dims += [x[1 + k], block]
        steps += [strides[count + 1 + k], strides[k]]
    whole = gather_elements(c.tags(0), c.out.item, [*dims, rest], [*steps, strides[-1]])
    wide = [images, *(x[1 + k] * block for k, block in enumerate(blocks)), *x[1 + count :]]
    cut = [images, *y[1 : 1 + count], *x[1 + count :]]
    flat = dense(wide)
    start = sum(borders[2 * k] * flat[1 + k] for k in range(count))
    return [gather_elements(whole, c.out.item, cut, flat, start)]


@rule("GATHER")
def gather(c: Context) -> list[array[int]] | None:
    """Return the slices that the indices select."""
    x, index = c.tensor(0), c.tensor(1)
    axis, batch = c.op.options.get("Axis", 0), c.op.options.get("BatchDims", 0)
    axis, batch = axis_of(axis, len(x.shape)), batch + (len(index.shape) if batch < 0 else 0)
    params = (
        prod(x.shape[:batch]),
        prod(x.shape[batch:axis]),
        x.shape[axis],
        prod(index.shape[batch:]),
        prod(x.shape[axis + 1 :]) * x.item,
    )
    indices = checked_indices(c.world, c.tags(1), index.item, (x.shape[axis],), add=True)
    return [pick_slices(c.world, params, c.tags(0), indices, index.item)]


@rule("GATHER_ND")
def gather_nd(c: Context) -> list[array[int]] | None:
    """Return the slices at some coordinates: several have to be known, and inside."""
    x, index = c.tensor(0), c.tensor(1)
    sizes = x.shape[: index.shape[-1]] if index.shape else ()
    if not sizes or len(sizes) != index.shape[-1] or x.item != c.out.item or index.item not in (4, 8):
        return None
    params = (1, 1, prod(sizes), prod(index.shape[:-1]), prod(x.shape[len(sizes) :]) * x.item)
    if len(sizes) == 1:
        indices = checked_indices(c.world, c.tags(1), index.item, (sizes[0],), add=True)
        return [pick_slices(c.world, params, c.tags(0), indices, index.item)]
    given = c.numbers(1)
    if given is None:
        return None
    flat = []
    for at in range(0, len(given), len(sizes)):
        place = 0
        for one, size in zip(given[at : at + len(sizes)], sizes, strict=True):
            if not 0 <= one < size:
                return None
            place = place * size + one
        flat.append(place)
    known = constant(b"".join(place.to_bytes(8, "little") for place in flat))
    return [pick_slices(c.world, params, c.tags(0), known, 8)]


@rule("EMBEDDING_LOOKUP")
def embedding_lookup(c: Context) -> list[array[int]] | None:
    """Return the rows of the table that the ids select."""
    ids, table = c.tensor(0), c.tensor(1)
    if len(ids.shape) != 1 or len(table.shape) < 2 or table.item != c.out.item:
        return None
    params = (1, 1, table.shape[0], ids.shape[0], prod(table.shape[1:]) * table.item)
    indices = checked_indices(c.world, c.tags(0), ids.item, (table.shape[0],), add=True)
    return [pick_slices(c.world, params, c.tags(1), indices, ids.item)]


def pick_slices(world: World, params: tuple[int, ...], tags: array[int], indices: array[int], item: int) -> array[int]:
    """What GATHER gives: moved slices where the indices are known, else a function of all that it reads."""
    batches, outer, size, count, width = params
    known = value_of(indices)
    if known is None:
        total = batches * outer * count * width
        return world.add_computation("gather", (params, item, digest(tags), digest(indices)), total, params=params)
    made = array("Q")
    for b in range(batches):
        for o in range(outer):
            start = (b * outer + o) * size
            for i in range(count):
                at = (b * count + i) * item
                index = clamp(int.from_bytes(known[at : at + item], "little", signed=True), 0, size - 1)
                made.extend(tags[(start + index) * width : (start + index + 1) * width])
    return made


@rule("DYNAMIC_UPDATE_SLICE")
def dynamic_update_slice(c: Context) -> list[array[int]] | None:
    """Replace a box of a tensor; constant starts that would leave the tensor are moved back inside, others are refused."""
    whole, update, starts = c.tensor(0), c.tensor(1), c.tensor(2)
    rank = len(whole.shape)
    if not len(update.shape) == rank == prod(starts.shape) or not rank or len(c.tags(0)) != c.out.size:
        return None
    if not whole.item == update.item == c.out.item or starts.item not in (4, 8):
        return None
    if any(u > w for u, w in zip(update.shape, whole.shape, strict=True)) or 0 in whole.shape:
        return None
    limits = tuple(w - u + 1 for w, u in zip(whole.shape, update.shape, strict=True))
    given = checked_indices(c.world, c.tags(2), starts.item, limits, add=True)
    dims = [
        Dimension(w, u, given[at * starts.item : (at + 1) * starts.item])
        for at, (w, u) in enumerate(zip(whole.shape, update.shape, strict=True))
    ]
    return [replace_box(c.world, dims, whole.item, c.tags(0), c.tags(1))]


def checked_indices(world: World, tags: array[int], item: int, limits: tuple[int, ...], *, add: bool) -> array[int]:
    """Return the tags of indices of which each lies inside its limit; known ones, which need no check, stay as they are.

    Only the source may `add` a check. A file that leaves one out, or has other limits, reads other tags.
    """
    if value_of(tags) is not None:
        return tags
    found = world.step("checked indices", (digest(tags), item, limits), len(tags), add=add)
    return array("Q") if found is None else found


@dataclass(frozen=True)
class Dimension:
    """A dimension of a tensor in which a box is replaced, and the tags of the box's start along it."""

    size: int
    box: int
    start: array[int]


def replace_box(world: World, dims: list[Dimension], width: int, tags: array[int], source: array[int]) -> array[int]:
    """Return a tensor with a box replaced: moved bytes where the starts are known, else a function of all that is read.

    `width` is the bytes of an element; dimensions that the box fills have no start, and merge with what lies behind them.
    """
    folded: list[Dimension] = []
    nowhere = array("Q")
    for one in reversed(dims):
        if one.size != one.box:
            folded.append(one)
        elif not folded:
            width *= one.size
        elif folded[-1].size == folded[-1].box:
            folded[-1] = Dimension(folded[-1].size * one.size, folded[-1].box * one.box, nowhere)
        elif one.size > 1:
            folded.append(Dimension(one.size, one.size, nowhere))
    folded.reverse()
    starts = [value_of(one.start) for one in folded]
    if any(start is None for start in starts):
        key = tuple((one.size, one.box, digest(one.start)) for one in folded)
        return world.add_computation("update", (key, width, digest(tags), digest(source)), len(tags))
    places = [
        clamp(int.from_bytes(start or b"", "little", signed=True), 0, one.size - one.box)
        for start, one in zip(starts, folded, strict=True)
    ]
    made = tags[:]
    strides = dense([one.size for one in folded])
    for number, place in enumerate(product(*(range(one.box) for one in folded))):
        at = sum((first + i) * stride for first, i, stride in zip(places, place, strides, strict=True)) * width
        made[at : at + width] = source[number * width : (number + 1) * width]
    return made


@rule("SHAPE")
def shape(c: Context) -> list[array[int]] | None:
    """Return the sizes that the file states."""
    if c.out.item not in (4, 8):
        return None
    data = b"".join(size.to_bytes(c.out.item, "little") for size in c.tensor(0).shape)
    return [constant(data)] if len(data) == c.out.size else None


@rule("FILL")
def fill(c: Context) -> list[array[int]] | None:
    """Repeat one element."""
    return [c.tags(1) * prod(c.out.shape)] if c.numbers(0) is not None else None


@rule("ZEROS_LIKE")
def zeros_like(c: Context) -> list[array[int]] | None:
    """Return zeros in the shape of the input."""
    return [fill_tags(0, c.out.size)] if c.out.scale == () else None
