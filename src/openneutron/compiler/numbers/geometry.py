"""Windows of convolutions and pools: strides, dilation, and what SAME and VALID mean (docs/numerics.md, Shared primitives)."""

from __future__ import annotations

from typing import Any, NamedTuple

from openneutron.compiler.l1 import RowDemand

SAME, VALID = 0, 1  # schema's Padding
# Kernel, stride and dilation in the firmware's own check; far above what any network uses.
WINDOW_MAX = 32_767
# Positions that a window can reach from any output element: keeps the firmware's INT32 arithmetic from wrapping.
REACH_MAX = 1 << 30


class Window(NamedTuple):
    """Geometry of a window in both directions; pads are at the top and left, the odd extra one goes after."""

    kernel_h: int
    kernel_w: int
    stride_h: int
    stride_w: int
    dilation_h: int
    dilation_w: int
    pad_top: int
    pad_left: int
    out_h: int
    out_w: int

    @property
    def demand(self) -> RowDemand:
        """Input rows that one output row needs."""
        return RowDemand(self.stride_h, 1, self.pad_top, (self.kernel_h - 1) * self.dilation_h + 1)

    def fields(self) -> dict[str, int]:
        """The kernel parameters that describe a convolution's window, by name."""
        names = ("kernel_h", "kernel_w", "stride_h", "stride_w", "dilation_h", "dilation_w", "pad_top", "pad_left")
        return {name: getattr(self, name) for name in names}

    def fits(self) -> bool:
        """True when the firmware can hold every number of this window and reach every position in INT32."""
        numbers = (self.kernel_h, self.kernel_w, self.stride_h, self.stride_w, self.dilation_h, self.dilation_w)
        reach = (
            self.out_h * self.stride_h,
            self.out_w * self.stride_w,
            self.kernel_h * self.dilation_h,
            self.kernel_w * self.dilation_w,
        )
        return all(1 <= number <= WINDOW_MAX for number in numbers) and max(reach) <= REACH_MAX


def axis(size: int, kernel: int, stride: int, dilation: int, padding: int) -> tuple[int, int]:
    """Return (output size, padding before) along one axis; the size may be ≤ 0 for a kernel larger than a VALID input."""
    extent = (kernel - 1) * dilation + 1
    out = -(-size // stride) if padding == SAME else (size + stride - extent) // stride
    total = max((out - 1) * stride + extent - size, 0)
    return out, total // 2


def window_of(options: Any, kernel: tuple[int, int], image: tuple[int, int]) -> Window:
    """Return the window that an operator's options (conv, depth-wise, pool) define for this kernel and image size."""
    dilation_h = getattr(options, "dilationHFactor", 1)
    dilation_w = getattr(options, "dilationWFactor", 1)
    out_h, top = axis(image[0], kernel[0], options.strideH, dilation_h, options.padding)
    out_w, left = axis(image[1], kernel[1], options.strideW, dilation_w, options.padding)
    return Window(
        kernel[0], kernel[1], options.strideH, options.strideW, dilation_h, dilation_w, top, left, out_h, out_w
    )


def transposed_window(options: Any, kernel: tuple[int, int], output: tuple[int, int]) -> Window:
    """Return the window of a transposed convolution, seen as the forward one that starts at its output.

    `out_h` and `out_w` are the size of the transposed convolution's input.
    """
    out_h, top = axis(output[0], kernel[0], options.strideH, 1, options.padding)
    out_w, left = axis(output[1], kernel[1], options.strideW, 1, options.padding)
    return Window(kernel[0], kernel[1], options.strideH, options.strideW, 1, 1, top, left, out_h, out_w)


def transposed_demand(window: Window) -> RowDemand:
    """Input rows behind one output row of a transposed convolution.

    Row y of the output is reached from input rows ceil((y + pad - kernel + 1) / stride) … floor((y + pad) / stride);
    the demand's linear form covers them with at most one row to spare on each side.
    """
    stride = window.stride_h
    before = -((window.pad_top - window.kernel_h + stride) // stride)
    after = -(-window.pad_top // stride)
    return RowDemand(1, stride, before, before + after + 1)
