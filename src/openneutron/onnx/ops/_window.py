"""Windows of convolutions and pools: strides, dilations, and forms of padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from openneutron.errors import FormatError

if TYPE_CHECKING:
    from openneutron.onnx.call import Call


@dataclass(frozen=True)
class Window:
    """Sizes along each spatial dimension; `begin` and `end` are the padding on either side."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    begin: tuple[int, ...]
    end: tuple[int, ...]

    @property
    def symmetric(self) -> bool:
        """Return whether both sides have the same padding."""
        return self.begin == self.end

    @property
    def pads(self) -> list[int]:
        """The padding in the order of torch's `pad`: the last dimension first."""
        return [size for pair in reversed(list(zip(self.begin, self.end, strict=True))) for size in pair]


def numbers(call: Call, name: str, count: int, default: int) -> tuple[int, ...]:
    """Return an attribute with one number per spatial dimension."""
    given = tuple(int(one) for one in call.attribute(name) or [default] * count)
    if len(given) != count:
        raise FormatError(
            f"its {name} is {list(given)}, for {count} dimensions of space", hint="export the model again"
        )
    return given


def window(call: Call, sizes: Sequence[int], kernel: Sequence[int]) -> Window:
    """Return the window of a call over an image of `sizes`."""
    count = len(sizes)
    if len(kernel) != count:
        raise FormatError(
            f"its kernel is {list(kernel)}, for {count} dimensions of space", hint="export the model again"
        )
    stride, dilation = numbers(call, "strides", count, 1), numbers(call, "dilations", count, 1)
    if any(size < 1 for size in (*kernel, *stride, *dilation)):
        raise FormatError(
            f"kernel {list(kernel)}, strides {list(stride)} and dilations {list(dilation)} must be above 0",
            hint="export the model again",
        )
    mode = call.text("auto_pad", "NOTSET", ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"))
    if mode.startswith("SAME"):
        begin, end = [], []
        for size, k, s, d in zip(sizes, kernel, stride, dilation, strict=True):
            total = max((-(-size // s) - 1) * s + (k - 1) * d + 1 - size, 0)
            first = total // 2 if mode == "SAME_UPPER" else total - total // 2
            begin.append(first)
            end.append(total - first)
    elif mode == "VALID":
        begin = end = [0] * count
    else:
        pads = [int(one) for one in call.attribute("pads") or [0] * 2 * count]
        if len(pads) != 2 * count:
            raise FormatError(f"its pads are {pads}, for {count} dimensions of space", hint="export the model again")
        begin, end = pads[:count], pads[count:]
    return Window(tuple(kernel), stride, dilation, tuple(begin), tuple(end))


def pad_image(x: torch.Tensor, found: Window, value: float = 0.0) -> tuple[torch.Tensor, tuple[int, ...]]:
    """Apply the padding that torch's operators cannot do themselves; returns the image and the remaining padding."""
    if found.symmetric and min(found.begin, default=0) >= 0:
        return x, found.begin
    return functional.pad(x, found.pads, value=value), (0,) * len(found.begin)
