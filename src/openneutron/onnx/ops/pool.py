"""Pooling: maximum, mean and norm over windows or over the whole image."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from openneutron.onnx.ops import converts
from openneutron.onnx.ops._types import to
from openneutron.onnx.ops._window import Window, window

if TYPE_CHECKING:
    from openneutron.onnx.call import Call

_MAX: dict[int, Any] = {1: functional.max_pool1d, 2: functional.max_pool2d, 3: functional.max_pool3d}
_MEAN: dict[int, Any] = {1: functional.avg_pool1d, 2: functional.avg_pool2d, 3: functional.avg_pool3d}


def _find_window(call: Call, x: torch.Tensor) -> Window:
    if x.dim() - 2 not in _MAX:
        raise call.refuse(f"it pools {x.dim() - 2} dimensions of space", "use 1, 2 or 3")
    return window(call, x.shape[2:], [int(one) for one in call.attribute("kernel_shape") or ()])


def _outputs(x: torch.Tensor, found: Window, ceil: bool) -> list[int]:
    """Return the number of windows; with ceil_mode the last may extend past the end, but must begin before it."""
    sizes = []
    for size, k, s, d, first, last in zip(
        x.shape[2:], found.kernel, found.stride, found.dilation, found.begin, found.end, strict=True
    ):
        span = size + first + last - ((k - 1) * d + 1)
        count = (-(-span // s) if ceil else span // s) + 1
        if ceil and (count - 1) * s >= size + first:
            count -= 1
        sizes.append(count)
    return sizes


def _reach(x: torch.Tensor, found: Window, sizes: list[int]) -> list[int]:
    """Return the padding at the end that the last windows need beyond the model's own."""
    return [
        max((count - 1) * s + (k - 1) * d + 1 - (size + first + last), 0)
        for count, s, k, d, size, first, last in zip(
            sizes, found.stride, found.kernel, found.dilation, x.shape[2:], found.begin, found.end, strict=True
        )
    ]


def _torch_pads(found: Window) -> bool:
    """Return whether torch's pools support this padding: symmetric and at most half the window."""
    return found.symmetric and all(0 <= p <= k // 2 for p, k in zip(found.begin, found.kernel, strict=True))


@converts("MaxPool")
def max_pool(call: Call) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Return the maximum of each window, and its position if that is read."""
    x = call.tensor(0)
    found = _find_window(call, x)
    sizes = _outputs(x, found, bool(call.attribute("ceil_mode", 0)))
    reach = _reach(x, found, sizes)
    wants_places = len([name for name in call.node.output if name]) > 1
    whole = x if x.is_floating_point() else x.to(torch.float32)
    padding = found.begin
    ceil = _as_ceil(x, found, sizes)
    if not ceil and (any(reach) or not _torch_pads(found)):
        found = Window(
            found.kernel, found.stride, found.dilation, found.begin,
            tuple(a + b for a, b in zip(found.end, reach, strict=True)),
        )  # fmt: skip
        whole, padding = functional.pad(whole, found.pads, value=float("-inf")), (0,) * len(found.begin)
    arguments = (whole, found.kernel, found.stride, padding, found.dilation, ceil)
    space = x.dim() - 2
    if not wants_places:
        return to(_crop(_MAX[space](*arguments), sizes), x.dtype)
    y, places = _MAX[space](*arguments, return_indices=True)
    y, places = to(_crop(y, sizes), x.dtype), _crop(places, sizes)
    return y, _places(call, x, places, whole.shape[2:], found.begin if padding != found.begin else (0,) * space)


def _as_ceil(x: torch.Tensor, found: Window, sizes: list[int]) -> bool:
    """Return whether torch's ceil_mode with the padding at the start gives these windows, without further padding."""
    symmetric = Window(found.kernel, found.stride, found.dilation, found.begin, found.begin)
    plain = _torch_pads(found) and _outputs(x, found, False) == sizes
    return not plain and _torch_pads(symmetric) and _outputs(x, symmetric, True) == sizes


def _crop(y: torch.Tensor, sizes: list[int]) -> torch.Tensor:
    for axis, size in enumerate(sizes, start=2):
        y = y if y.shape[axis] == size else y.narrow(axis, 0, size)
    return y


def _places(call: Call, x: torch.Tensor, places: torch.Tensor, padded: Any, begin: tuple[int, ...]) -> torch.Tensor:
    """Convert positions of maxima: torch counts within one, possibly padded, image, ONNX through the whole tensor."""
    coordinates = []
    rest = places
    for size in reversed(tuple(padded)):
        coordinates.append(rest % size)
        rest = torch.div(rest, size, rounding_mode="floor")
    coordinates = [one - first for one, first in zip(reversed(coordinates), begin, strict=True)]
    sizes = tuple(x.shape[2:])
    column = bool(call.attribute("storage_order", 0))
    flat = torch.zeros_like(places)
    for at, one in enumerate(coordinates):
        stride = prod(sizes[:at]) if column else prod(sizes[at + 1 :])
        flat = flat + one * stride
    image = torch.arange(x.shape[0] * x.shape[1]).reshape(x.shape[0], x.shape[1], *[1] * len(sizes))
    return flat + image * prod(sizes)


def _mean(call: Call, x: torch.Tensor, found: Window, counts_pads: bool) -> torch.Tensor:
    sizes = _outputs(x, found, bool(call.attribute("ceil_mode", 0)))
    reach = _reach(x, found, sizes)
    space = x.dim() - 2
    if any(d != 1 for d in found.dilation):
        return _dilated_mean(x, found, sizes, counts_pads)
    if not any(reach) and _torch_pads(found):
        return _MEAN[space](x, found.kernel, found.stride, found.begin, False, counts_pads)
    area = prod(found.kernel)
    longer = tuple(a + b for a, b in zip(found.end, reach, strict=True))
    whole = Window(found.kernel, found.stride, found.dilation, found.begin, longer)
    sums = _MEAN[space](functional.pad(x, whole.pads), found.kernel, found.stride) * area
    counts = functional.pad(torch.ones_like(x[:1, :1]), found.pads, value=1.0 if counts_pads else 0.0)
    counts = functional.pad(counts, Window((), (), (), (0,) * space, tuple(reach)).pads)
    return _crop(sums / (_MEAN[space](counts, found.kernel, found.stride) * area), sizes)


def _dilated_mean(x: torch.Tensor, found: Window, sizes: list[int], counts_pads: bool) -> torch.Tensor:
    """Compute a mean over dilated windows by a depth-wise convolution with ones; torch's pools have no such form."""
    space, channels = x.dim() - 2, x.shape[1]
    convolve: Any = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}[space]
    reach = _reach(x, found, sizes)
    whole = Window((), (), (), found.begin, tuple(a + b for a, b in zip(found.end, reach, strict=True)))
    ones = torch.ones(channels, 1, *found.kernel, dtype=x.dtype)
    sums = convolve(functional.pad(x, whole.pads), ones, None, found.stride, 0, found.dilation, channels)
    counts = functional.pad(torch.ones_like(x[:1, :1]), found.pads, value=1.0 if counts_pads else 0.0)
    counts = functional.pad(counts, Window((), (), (), (0,) * space, tuple(reach)).pads)
    each = convolve(counts, ones[:1], None, found.stride, 0, found.dilation)
    return _crop(sums / each, sizes)


@converts("AveragePool")
def average_pool(call: Call) -> torch.Tensor:
    """Return the mean of each window, with or without its padding."""
    return mean_of(call, call.tensor(0))


def mean_of(call: Call, x: torch.Tensor) -> torch.Tensor:
    """Return the mean that a call's attributes describe."""
    return _mean(call, x, _find_window(call, x), bool(call.attribute("count_include_pad", 0)))


@converts("LpPool")
def lp_pool(call: Call) -> torch.Tensor:
    """Return the norm of each window."""
    x, p = call.tensor(0), int(call.attribute("p", 2))
    found = _find_window(call, x)
    powers = x * x if p == 2 else x.abs() ** p
    sums = _mean(call, powers, found, True) * prod(found.kernel)
    return torch.sqrt(sums) if p == 2 else sums ** (1.0 / p)


def _space(x: torch.Tensor) -> list[int]:
    return list(range(2, x.dim()))


@converts("GlobalAveragePool")
def global_average_pool(call: Call) -> torch.Tensor:
    """Return the mean of each channel."""
    x = call.tensor(0)
    return functional.adaptive_avg_pool2d(x, (1, 1)) if x.dim() == 4 else x.mean(_space(x), True)


@converts("GlobalMaxPool")
def global_max_pool(call: Call) -> torch.Tensor:
    """Return the maximum of each channel."""
    x = call.tensor(0)
    return x.amax(_space(x), True)


@converts("GlobalLpPool")
def global_lp_pool(call: Call) -> torch.Tensor:
    """Return the norm of each channel."""
    x, p = call.tensor(0), int(call.attribute("p", 2))
    return (x.abs() ** p).sum(_space(x), True) ** (1.0 / p)


@converts("MaxUnpool")
def max_unpool(call: Call) -> torch.Tensor:
    """Write each value to the position where a MaxPool found it, zeros elsewhere."""
    x, places = call.tensor(0), call.tensor(1)
    kernel = [int(one) for one in call.attribute("kernel_shape") or ()]
    stride = [int(one) for one in call.attribute("strides") or [1] * len(kernel)]
    pads = [int(one) for one in call.attribute("pads") or [0] * 2 * len(kernel)]
    natural = [
        (size - 1) * s + k - pads[at] - pads[at + len(kernel)]
        for at, (size, s, k) in enumerate(zip(x.shape[2:], stride, kernel, strict=True))
    ]
    shape = [*x.shape[:2], *natural]
    made = torch.zeros(prod(shape), dtype=x.dtype).scatter(0, places.reshape(-1), x.reshape(-1)).reshape(shape)
    if not call.has(2):
        return made
    wanted = call.numbers(2)
    pads_to = [size for axis in reversed(range(2, len(shape))) for size in (0, wanted[axis] - shape[axis])]
    return functional.pad(made, pads_to)
