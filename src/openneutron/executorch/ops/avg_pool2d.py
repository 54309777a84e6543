"""Average pooling; one-dimensional pooling arrives as two-dimensional."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.layout import Value
from openneutron.executorch.ops import annotates, lowers
from openneutron.executorch.ops._window import NHWC, Window, pad_tensor
from openneutron.executorch.ops.max_pool2d import is_image
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.call import Call
    from openneutron.executorch.quantizer.annotator import Annotator


@annotates("aten.avg_pool2d.default", "aten.avg_pool1d.default")
def annotate(node: Node, a: Annotator) -> None:
    """An average lies within the range of what it averages."""
    a.shared(node)


@limit("divisor_override must not be set")
def plain_divisor(call: Call) -> Verdict:
    """LiteRT divides by the number of taps."""
    override = call["divisor_override"]
    return OK if override is None else no(f"it is {override}", hint="scale the result instead")


@limit("windows that reach beyond the image must divide by all their taps, or be placed as LiteRT's SAME")
def taps_countable(call: Call) -> Verdict:
    """PyTorch counts padding by default (then a PAD comes first); LiteRT counts taps inside the image."""
    x = call.value("self")
    window = _window(call)
    sizes, out = x.shape[-2:], call.shape[-2:]
    if window.mode(sizes, out):
        counts = not any(window.padding) or not call["count_include_pad"]
        if counts or window.mode(sizes, out) == "VALID":
            return OK
    if any(_overhang(window, axis, sizes[axis], out[axis]) for axis in (0, 1)):
        return no("ceil_mode adds windows that are only partly filled", hint="pool without ceil_mode, or pad before")
    return OK if call["count_include_pad"] else no(f"padding is {window.padding} without count_include_pad")


def _overhang(window: Window, axis: int, size: int, out: int) -> bool:
    return (out - 1) * window.stride[axis] + window.kernel[axis] > size + 2 * window.padding[axis]


def _window(call: Call) -> Window:
    kernel = call.numbers("kernel_size", 2)
    stride, padding = call.numbers("stride", 2, kernel), call.numbers("padding", 2)
    return Window((kernel[0], kernel[1]), (stride[0], stride[1]), (padding[0], padding[1]))


@lowers("aten.avg_pool2d.default", limits=(is_image, plain_divisor, taps_countable), layout="channels_last")
def lower(call: Call) -> Value:
    """AVERAGE_POOL_2D; padding that PyTorch counts becomes a PAD before it."""
    x = call.activation("self")
    window = _window(call)
    shape = call.shape
    if x.rank == 3:
        batched = x.with_ones((1, *x.shape))
        assert batched is not None
        x, shape = batched, (1, *shape)
    tensor = call.tensor(x, NHWC)
    mode = window.mode(x.shape[2:], shape[2:])
    if any(window.padding) and call["count_include_pad"]:
        tensor = pad_tensor(call, tensor, window.pads(x.shape[2:], shape[2:]), x.quantization)
        mode = "VALID"
    return average(call, x, tensor, window, mode, shape)


def average(call: Call, x: Value, tensor: int, window: Window, mode: str, shape: tuple[int, ...]) -> Value:
    """Emit AVERAGE_POOL_2D; the result keeps the input's parameters."""
    value, made = call.result(NHWC, x.quantization, shape)
    call.emit(
        "AVERAGE_POOL_2D", [tensor], [made], padding=mode, stride_h=window.stride[0], stride_w=window.stride[1],
        filter_height=window.kernel[0], filter_width=window.kernel[1], fused_activation_function="NONE",
    )  # fmt: skip
    view = value.with_ones(call.shape)
    return view if view is not None else value
