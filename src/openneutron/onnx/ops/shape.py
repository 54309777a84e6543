"""Shape operators: they move or rename elements and compute nothing."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np
import torch

from openneutron.errors import FormatError
from openneutron.onnx.ops import converts
from openneutron.onnx.values import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openneutron.onnx.call import Call
    from openneutron.onnx.elaborate import Elaborator


@converts("Identity", structural=True)
def identity(call: Call, elaborator: Elaborator, known: Mapping[str, Value]) -> list[Value]:
    """Return the input unchanged."""
    return [call.value(0)]


@converts("Shape", structural=True)
def shape(call: Call, elaborator: Elaborator, known: Mapping[str, Value]) -> list[Value]:
    """Return the shape, which is always known here."""
    sizes = call.shape(0)
    start, end = int(call.attribute("start", 0)), call.attribute("end")
    return [Value(data=torch.tensor(sizes[start : None if end is None else int(end)], dtype=torch.int64))]


@converts("Size", structural=True)
def size(call: Call, elaborator: Elaborator, known: Mapping[str, Value]) -> list[Value]:
    """Return the number of elements, which is always known here."""
    return [Value(data=torch.tensor(prod(call.shape(0)), dtype=torch.int64))]


@converts("Reshape")
def reshape(call: Call) -> torch.Tensor:
    """Reshape: 0 keeps a size, -1 is inferred."""
    x, wanted = call.tensor(0), call.numbers(1)
    if not call.attribute("allowzero", 0):
        if any(one == 0 and at >= x.dim() for at, one in enumerate(wanted)):
            raise FormatError(f"it reshapes {list(x.shape)} to {wanted}: there is no size to keep for a 0")
        wanted = [x.shape[at] if one == 0 else one for at, one in enumerate(wanted)]
    return x.reshape(wanted)


@converts("Flatten")
def flatten(call: Call) -> torch.Tensor:
    """Flatten to two dimensions, split at an axis."""
    x, axis = call.tensor(0), int(call.attribute("axis", 1))
    axis = axis + x.dim() if axis < 0 else axis
    if x.dim() > 1 and axis == 1:
        return torch.flatten(x, 1)
    return x.reshape(prod(x.shape[:axis]), prod(x.shape[axis:]))


@converts("Transpose")
def transpose(call: Call) -> torch.Tensor:
    """Permute the dimensions."""
    x = call.tensor(0)
    order = [int(one) for one in call.attribute("perm") or reversed(range(x.dim()))]
    return x.permute(order)


@converts("Squeeze")
def squeeze(call: Call) -> torch.Tensor:
    """Remove dimensions of size 1."""
    x, axes = call.tensor(0), call.axes(1)
    if axes is None:
        return x.reshape([one for one in x.shape if one != 1])
    gone = {axis % x.dim() for axis in axes}
    if any(x.shape[axis] != 1 for axis in gone):
        raise FormatError(f"it squeezes axes {sorted(gone)} of {list(x.shape)}", hint="export the model again")
    return torch.squeeze(x, tuple(gone)) if len(gone) > 1 else x.squeeze(*gone) if gone else x


@converts("Unsqueeze")
def unsqueeze(call: Call) -> torch.Tensor:
    """Insert dimensions of size 1."""
    x, axes = call.tensor(0), call.axes(1) or []
    rank = x.dim() + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        x = x.unsqueeze(axis)
    return x


@converts("Concat")
def concat(call: Call) -> torch.Tensor:
    """Concatenate tensors."""
    inputs = call.tensors()
    axis = int(call.attribute("axis", 0))
    return torch.cat(inputs, axis) if len(inputs) > 1 else inputs[0]


@converts("Split")
def split(call: Call) -> tuple[torch.Tensor, ...]:
    """Split along an axis into tensors of given or equal sizes."""
    x, axis = call.tensor(0), int(call.attribute("axis", 0))
    sizes = call.axes(1, "split")
    if sizes is None:
        count = int(call.attribute("num_outputs", len(call.node.output)))
        each = -(-x.shape[axis] // count)
        sizes = [min(each, max(x.shape[axis] - each * at, 0)) for at in range(count)]
    if sum(sizes) != x.shape[axis]:
        raise FormatError(f"it splits {x.shape[axis]} into {sizes}", hint="export the model again")
    return tuple(torch.split(x, sizes, axis))


@converts("Slice")
def slice_(call: Call) -> torch.Tensor:
    """Slice each dimension; a negative step goes backwards."""
    x = call.tensor(0)
    if call.version < 10:
        starts, ends = list(call.attribute("starts") or ()), list(call.attribute("ends") or ())
        axes, steps = call.attribute("axes"), None
    else:
        starts, ends = call.numbers(1), call.numbers(2)
        axes = call.numbers(3) if call.has(3) else None
        steps = call.numbers(4) if call.has(4) else None
    axes = list(range(len(starts))) if axes is None else [int(axis) % max(x.dim(), 1) for axis in axes]
    steps = [1] * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise FormatError(f"it slices from {starts} to {ends} by {steps}", hint="export the model again")
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        places = range(x.shape[axis])[_clip_int64(start) : _clip_int64(end) : step]
        if step < 0 and _is_before_all(end, x.shape[axis]):
            places = range(x.shape[axis])[_clip_int64(start) :: step]
        if len(places) == x.shape[axis] and step == 1:
            continue
        if step > 0:
            first, last = (places[0], places[-1] + 1) if len(places) else (0, 0)
            x = torch.ops.aten.slice.Tensor(x, axis, first, last, step)
        elif len(places) == x.shape[axis]:
            x = torch.flip(x, [axis])
        else:
            x = torch.index_select(x, axis, call.constant(np.array(places, np.int64)))
    return x


def _clip_int64(number: int) -> int:
    """Clip the largest INT64, which exporters write for "to the end"."""
    return max(min(number, 1 << 40), -(1 << 40))


def _is_before_all(end: int, size: int) -> bool:
    return end < -size


@converts("Expand", grows=True)
def expand(call: Call) -> torch.Tensor:
    """Repeat by broadcasting."""
    x, wanted = call.tensor(0), call.numbers(1)
    return x.expand(torch.broadcast_shapes(x.shape, tuple(wanted)))


@converts("Tile", grows=True)
def tile(call: Call) -> torch.Tensor:
    """Repeat along each dimension."""
    x, counts = call.tensor(0), call.numbers(1)
    return x.repeat(counts) if counts else x


@converts("DepthToSpace")
def depth_to_space(call: Call) -> torch.Tensor:
    """Move channels into pixels."""
    x, block = call.tensor(0), int(call.attribute("blocksize", 1))
    n, c, h, w = x.shape
    if call.text("mode", "DCR", ("DCR", "CRD")) == "CRD":
        return torch.nn.functional.pixel_shuffle(x, block)
    y = x.reshape(n, block, block, c // block**2, h, w).permute(0, 3, 4, 1, 5, 2)
    return y.reshape(n, c // block**2, h * block, w * block)


@converts("SpaceToDepth")
def space_to_depth(call: Call) -> torch.Tensor:
    """Move pixels into channels."""
    x, block = call.tensor(0), int(call.attribute("blocksize", 1))
    n, c, h, w = x.shape
    if call.text("mode", "DCR", ("DCR", "CRD")) == "CRD":
        return torch.nn.functional.pixel_unshuffle(x, block)
    y = x.reshape(n, c, h // block, block, w // block, block).permute(0, 3, 5, 1, 2, 4)
    return y.reshape(n, c * block**2, h // block, w // block)


@converts("Trilu")
def trilu(call: Call) -> torch.Tensor:
    """Return the upper or lower triangle."""
    x, diagonal = call.tensor(0), call.numbers(1)[0] if call.has(1) else 0
    return torch.triu(x, diagonal) if call.attribute("upper", 1) else torch.tril(x, diagonal)


@converts("ReverseSequence")
def reverse_sequence(call: Call) -> torch.Tensor:
    """Reverse each sequence up to its own length."""
    x, lengths = call.tensor(0), call.numbers(1)
    time, batch = int(call.attribute("time_axis", 0)), int(call.attribute("batch_axis", 1))
    count = x.shape[time]
    places = np.stack([np.r_[np.arange(n)[::-1], np.arange(n, count)] for n in lengths])  # [batch, time]
    shape = [1] * x.dim()
    shape[batch], shape[time] = x.shape[batch], count
    index = places if batch < time else places.T
    return torch.gather(x, time, call.constant(index.reshape(shape).astype(np.int64)).expand(x.shape))


@converts("CenterCropPad")
def center_crop_pad(call: Call) -> torch.Tensor:
    """Crop or pad around the centre to a size."""
    x, wanted = call.tensor(0), call.numbers(1)
    axes = [int(one) % x.dim() for one in call.attribute("axes") or range(x.dim())]
    for axis, size in zip(axes, wanted, strict=True):
        have = x.shape[axis]
        if have > size:
            x = x.narrow(axis, (have - size) // 2, size)
        elif have < size:
            before = (size - have) // 2
            pads = [0] * 2 * x.dim()
            at = 2 * (x.dim() - 1 - axis)
            pads[at], pads[at + 1] = before, size - have - before
            x = torch.nn.functional.pad(x, pads)
    return x


@converts("Col2Im")
def col2im(call: Call) -> torch.Tensor:
    """Add up columns into the image they were extracted from."""
    x, image, block = call.tensor(0), call.numbers(1), call.numbers(2)
    count = len(image)
    stride = [int(one) for one in call.attribute("strides") or [1] * count]
    dilation = [int(one) for one in call.attribute("dilations") or [1] * count]
    pads = [int(one) for one in call.attribute("pads") or [0] * 2 * count]
    channels = x.shape[1] // prod(block)
    whole = [size + pads[at] + pads[at + count] for at, size in enumerate(image)]
    index = np.zeros((prod(block), x.shape[2]), np.int64)
    steps = [(size - (k - 1) * d - 1) // s + 1 for size, k, d, s in zip(whole, block, dilation, stride, strict=True)]
    kernel_at = np.stack(np.unravel_index(np.arange(prod(block)), block), 1)
    step_at = np.stack(np.unravel_index(np.arange(x.shape[2]), steps), 1)
    for axis in range(count):
        place = kernel_at[:, axis, None] * dilation[axis] + step_at[None, :, axis] * stride[axis]
        index = index * whole[axis] + place
    flat = torch.zeros(x.shape[0], channels, prod(whole), dtype=x.dtype)
    places = call.constant(index.reshape(1, 1, -1)).expand(x.shape[0], channels, -1)
    made = flat.scatter_add(2, places, x.reshape(x.shape[0], channels, -1)).reshape(x.shape[0], channels, *whole)
    for axis in range(count):
        made = made.narrow(axis + 2, pads[axis], image[axis])
    return made
