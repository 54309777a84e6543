"""Convolutions, plain and transposed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from openneutron.onnx.ops import converts
from openneutron.onnx.ops._window import Window, numbers, pad_image, window

if TYPE_CHECKING:
    from openneutron.onnx.call import Call

_CONV = {1: torch.conv1d, 2: torch.conv2d, 3: torch.conv3d}
_TRANSPOSED = {1: torch.conv_transpose1d, 2: torch.conv_transpose2d, 3: torch.conv_transpose3d}


def convolve(call: Call, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """Return the convolution that a call's attributes describe, of these tensors."""
    space = x.dim() - 2
    if space not in _CONV or weight.dim() != x.dim():
        raise call.refuse(
            f"it convolves {list(x.shape)} with {list(weight.shape)}", "use 1, 2 or 3 dimensions of space"
        )
    found = window(call, x.shape[2:], call.attribute("kernel_shape") or list(weight.shape[2:]))
    x, padding = pad_image(x, found)
    groups = int(call.attribute("group", 1))
    return _CONV[space](x, weight, bias, found.stride, padding, found.dilation, groups)


@converts("Conv")
def conv(call: Call) -> torch.Tensor:
    """Convolve with constant or computed weights."""
    return convolve(call, call.tensor(0), call.tensor(1), call.optional(2))


@converts("ConvInteger")
def conv_integer(call: Call) -> torch.Tensor:
    """Convolve integers: products of 8-bit numbers and their sums are exact in float64."""
    x, weight = call.tensor(0).double(), call.tensor(1).double()
    if call.has(2):
        x = x - call.tensor(2).double()
    if call.has(3):
        zero = call.tensor(3).double()
        weight = weight - (zero.reshape(-1, *[1] * (weight.dim() - 1)) if zero.numel() > 1 else zero)
    return convolve(call, x, weight, None).to(torch.int32)


@converts("ConvTranspose")
def conv_transpose(call: Call) -> torch.Tensor:
    """Transposed convolution; asymmetric padding is cropped afterwards."""
    x, weight, bias = call.tensor(0), call.tensor(1), call.optional(2)
    space = x.dim() - 2
    if space not in _TRANSPOSED or weight.dim() != x.dim():
        raise call.refuse(
            f"it convolves {list(x.shape)} with {list(weight.shape)}", "use 1, 2 or 3 dimensions of space"
        )
    kernel = [int(one) for one in call.attribute("kernel_shape") or weight.shape[2:]]
    stride, dilation = numbers(call, "strides", space, 1), numbers(call, "dilations", space, 1)
    extra = list(numbers(call, "output_padding", space, 0))
    full = [
        (size - 1) * s + (k - 1) * d + 1 + e
        for size, s, k, d, e in zip(x.shape[2:], stride, kernel, dilation, extra, strict=True)
    ]
    begin, end = _crop_sizes(call, x, full, stride)
    groups = int(call.attribute("group", 1))
    padding = [min(first, last) for first, last in zip(begin, end, strict=True)]
    if min(padding) < 0 or any(e >= max(s, d) for e, s, d in zip(extra, stride, dilation, strict=True)):
        padding = [0] * space
    within = [e if e < max(s, d) else 0 for e, s, d in zip(extra, stride, dilation, strict=True)]
    y = _TRANSPOSED[space](x, weight, bias, stride, padding, within, groups, dilation)
    found = Window(
        tuple(kernel), stride, dilation,
        tuple(p - first for p, first in zip(padding, begin, strict=True)),
        tuple(p - last + e - w for p, last, e, w in zip(padding, end, extra, within, strict=True)),
    )  # fmt: skip
    for axis, (first, last) in enumerate(zip(found.begin, found.end, strict=True), start=2):
        if first < 0 or last < 0:
            y = torch.narrow(y, axis, max(-first, 0), y.shape[axis] - max(-first, 0) - max(-last, 0))
    if max(*found.begin, *found.end) > 0:
        value = 0.0 if bias is None else None
        y = _extend(y, found, bias) if value is None else torch.nn.functional.pad(y, [max(p, 0) for p in found.pads])
    return y


def _extend(y: torch.Tensor, found: Window, bias: torch.Tensor | None) -> torch.Tensor:
    """Append rows and columns that no input contributes to: they hold the bias."""
    assert bias is not None
    shape = (1, -1, *[1] * (y.dim() - 2))
    pads = [max(p, 0) for p in found.pads]
    return torch.nn.functional.pad(y - bias.reshape(shape), pads) + bias.reshape(shape)


def _crop_sizes(call: Call, x: torch.Tensor, full: list[int], stride: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """Return how much to crop from the full result at either side of each dimension; negative values extend it."""
    space = len(full)
    mode = call.text("auto_pad", "NOTSET", ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"))
    wanted = call.attribute("output_shape")
    if wanted is None and not mode.startswith("SAME"):
        pads = [0] * 2 * space if mode == "VALID" else [int(one) for one in call.attribute("pads") or [0] * 2 * space]
        if len(pads) != 2 * space:
            raise call.refuse(f"its pads are {pads}, for {space} dimensions of space", "export the model again")
        return pads[:space], pads[space:]
    sizes = [int(one) for one in wanted or []][-space:]
    sizes = sizes or [size * s for size, s in zip(x.shape[2:], stride, strict=True)]
    begin, end = [], []
    for size, out in zip(full, sizes, strict=True):
        total = size - out
        first = total // 2 if mode == "SAME_UPPER" else total - total // 2
        begin.append(first)
        end.append(total - first)
    return begin, end
