"""Average pooling; one-dimensional pooling arrives as two-dimensional."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.ops._pieces import Span, average_pieces
from openneutron.executorch.lower.ops._window import NHWC, Window, pad_tensor
from openneutron.executorch.lower.ops.max_pool2d import is_image
from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.avg_pool2d.default", "aten.avg_pool1d.default", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Share the input's quantization parameters: an average lies within the range of its inputs."""
    a.share_parameters(node)


@limit("divisor_override must not be set")
def plain_divisor(call: Call) -> Verdict:
    """LiteRT divides by the number of taps."""
    override = call["divisor_override"]
    return OK if override is None else no(f"it is {override}", hint="scale the result instead")


def _window(call: Call) -> Window:
    kernel = call.numbers("kernel_size", 2)
    stride, padding = call.numbers("stride", 2, kernel), call.numbers("padding", 2)
    return Window((kernel[0], kernel[1]), (stride[0], stride[1]), (padding[0], padding[1]))


@lowers("aten.avg_pool2d.default", limits=(is_image, plain_divisor), layout="channels_last", cpu="pool")
def lower(call: Call) -> Value:
    """Lower to AVERAGE_POOL_2D; padding that PyTorch counts becomes a PAD before it."""
    x = call.activation("self")
    window = _window(call)
    shape = call.shape
    if x.rank == 3:
        batched = x.with_ones((1, *x.shape))
        assert batched is not None
        x, shape = batched, (1, *shape)
    tensor = call.tensor(x, NHWC)
    sizes, out = x.shape[2:], shape[2:]
    counted = any(window.padding) and bool(call["count_include_pad"])
    mode = window.mode(sizes, out)
    if mode and not counted:
        return average(call, x, tensor, window, mode, shape)
    spans = [_spans(window, axis, sizes[axis], out[axis], counted) for axis in (0, 1)]
    if counted:
        pads = [
            [0, 0],
            *([window.padding[axis], _behind(window, spans[axis], axis, sizes[axis])] for axis in (0, 1)),
            [0, 0],
        ]
        tensor = pad_tensor(call, tensor, pads, x.quantization)
    return average_pieces(call, x, tensor, *spans)


def _spans(window: Window, axis: int, size: int, out: int, counted: bool) -> list[Span]:
    """Return the span that each window averages: the image, with its padding where that counts."""
    low, high = (0, size + 2 * window.padding[axis]) if counted else (0, size)
    start = 0 if counted else -window.padding[axis]
    begins = [start + index * window.stride[axis] for index in range(out)]
    return [(max(low, begin), min(high, begin + window.kernel[axis])) for begin in begins]


def _behind(window: Window, spans: list[Span], axis: int, size: int) -> int:
    """Return the padding behind the image, at most as much as windows read."""
    return max(0, max(end for _, end in spans) - size - window.padding[axis])


def average(call: Call, x: Value, tensor: int, window: Window, mode: str, shape: tuple[int, ...]) -> Value:
    """Emit AVERAGE_POOL_2D; the result keeps the input's parameters."""
    value, made = call.result(NHWC, x.quantization, shape)
    call.emit(
        "AVERAGE_POOL_2D", [tensor], [made], padding=mode, stride_h=window.stride[0], stride_w=window.stride[1],
        filter_height=window.kernel[0], filter_width=window.kernel[1], fused_activation_function="NONE",
    )  # fmt: skip
    view = value.with_ones(call.shape)
    return view if view is not None else value
