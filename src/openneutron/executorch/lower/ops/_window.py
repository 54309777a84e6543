"""Sliding windows: PyTorch pads by numbers, LiteRT by SAME or VALID; where neither fits, an explicit PAD comes first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from openneutron.executorch.lower.values import Value, channels_last
from openneutron.litert.graph import DType, Quantization

if TYPE_CHECKING:
    from openneutron.executorch.lower.call import Call

NHWC = channels_last(4)


@dataclass(frozen=True)
class Window:
    """Sizes of a window over height and width."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int] = (1, 1)

    def extent(self, axis: int) -> int:
        """Number of pixels that the window spans."""
        return (self.kernel[axis] - 1) * self.dilation[axis] + 1

    def mode(self, sizes: Sequence[int], out: Sequence[int]) -> str:
        """ "SAME" or "VALID" when LiteRT's rule places every window where PyTorch does, else "" (pad first)."""
        if all(self._after(axis, sizes, out) == 0 for axis in (0, 1)) and not any(self.padding):
            return "VALID"
        return "SAME" if all(self._is_same(axis, sizes[axis], out[axis]) for axis in (0, 1)) else ""

    def _is_same(self, axis: int, size: int, out: int) -> bool:
        stride = self.stride[axis]
        total = max(0, (out - 1) * stride + self.extent(axis) - size)
        return out == -(-size // stride) and total // 2 == self.padding[axis]

    def _after(self, axis: int, sizes: Sequence[int], out: Sequence[int]) -> int:
        reach = (out[axis] - 1) * self.stride[axis] + self.extent(axis)
        return max(0, reach - sizes[axis] - self.padding[axis])

    def pads(self, sizes: Sequence[int], out: Sequence[int]) -> list[list[int]]:
        """Rows and columns to add before and after, for NHWC; no more behind than the last window reads."""
        spatial = [[self.padding[axis], self._after(axis, sizes, out)] for axis in (0, 1)]
        return [[0, 0], *spatial, [0, 0]]


def pad_window(call: Call, x: Value, window: Window, out: Sequence[int], fill: int | None = None) -> tuple[int, str]:
    """Return the NHWC tensor of `x`, padded if necessary, and the padding mode.

    `fill` is the stored value to pad with, by default the zero point.
    """
    sizes = x.shape[2:]
    tensor = call.tensor(x, NHWC)
    mode = window.mode(sizes, out)
    if mode:
        return tensor, mode
    return pad_tensor(call, tensor, window.pads(sizes, out), x.quantization, fill), "VALID"


def pad_tensor(
    call: Call, tensor: int, pads: Sequence[Sequence[int]], quantization: Quantization | None, fill: int | None = None
) -> int:
    """Emit PAD (zero point) or PADV2 (`fill`) in front of the current operator."""
    builder = call.lowering.builder
    source = builder.graph.tensors[tensor]
    shape = [size + before + after for size, (before, after) in zip(source.shape, pads, strict=True)]
    assert quantization is not None
    made = builder.tensor(
        call.layouts.unique(f"{call.node.name}_padded"), shape, source.dtype,
        scale=quantization.scale, zero_point=quantization.zero_point,
    )  # fmt: skip
    paddings = call.constant("pads", [list(pair) for pair in pads], DType.INT32)
    if fill is None or fill == quantization.zero_point[0]:
        call.emit("PAD", [tensor, paddings], [made])
    else:
        value = call.constant("fill", [fill], source.dtype, quantization)
        call.emit("PADV2", [tensor, paddings, value], [made])
    return made
