"""Convolution in one and two dimensions: plain, grouped, depth-wise; transposed ones are in `_conv_transpose`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.ops._activation import fuse_activation
from openneutron.executorch.lower.ops._conv_transpose import lower_conv_transpose, transposed_fits
from openneutron.executorch.lower.ops._weights import constant_bias, constant_weights, weights_and_bias
from openneutron.executorch.lower.ops._window import NHWC, Window, pad_window
from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.conv1d.default", "aten.conv1d.padding", "aten.conv2d.default", "aten.conv2d.padding", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Quantize input, weights per output channel (dimension 0) and output; the bias is quantized at lowering."""
    a.compute(node, [node.args[0]], {node.args[1]: a.weight_spec(node.args[1], 0, convolution=True)})


@annotates("aten.conv_transpose1d.default", "aten.conv_transpose2d.input", wide=True)
def annotate_transposed(node: Node, a: Annotator) -> None:
    """Quantize as for a convolution; output channels are the weights' dimension 1."""
    a.compute(node, [node.args[0]], {node.args[1]: a.weight_spec(node.args[1], 1, convolution=True)})


@annotates("aten.convolution.default", wide=True)
def annotate_general(node: Node, a: Annotator) -> None:
    """Quantize direct calls of `torch.ops.aten.convolution`."""
    axis = 1 if a.argument(node, "transposed") else 0
    a.compute(node, [node.args[0]], {node.args[1]: a.weight_spec(node.args[1], axis, convolution=True)})


@limit("the convolution must be 1-D or 2-D")
def one_or_two_dimensions(call: Call) -> Verdict:
    """LiteRT has no INT8 convolution over volumes."""
    rank = call.value("weight").rank
    return OK if rank in (3, 4) else no(f"it is {rank - 2}-D")


def image(value: Value) -> Value:
    """Return a 1-D signal as an image of height 1, and images unchanged."""
    if value.rank == 4:
        return value
    n, c, w = value.shape
    wide = value.with_ones((n, c, 1, w))
    return wide if wide is not None else value


def pair(numbers: tuple[int, ...], first: int) -> tuple[int, int]:
    """Return (height, width) of a parameter; a 1-D one has `first` as height."""
    return (first, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])


@lowers(
    "aten.convolution.default",
    limits=(one_or_two_dimensions, constant_weights, constant_bias, transposed_fits),
    layout="channels_last",
    cpu="conv",
)
def lower(call: Call) -> Value:
    """Lower to CONV_2D, DEPTHWISE_CONV_2D or TRANSPOSE_CONV in NHWC."""
    x, weight, bias = call.activation("input"), call.value("weight"), call.optional("bias")
    space = x.rank - 2
    stride, padding, dilation = (call.numbers(name, space) for name in ("stride", "padding", "dilation"))
    x4, weight4 = image(x), image(weight)
    out = (*call.shape[:2], 1, call.shape[2]) if space == 1 else call.shape
    window = Window(
        kernel=(weight4.shape[2], weight4.shape[3]), stride=pair(stride, 1), padding=pair(padding, 0),
        dilation=pair(dilation, 1),
    )  # fmt: skip
    if call["transposed"]:
        made = lower_conv_transpose(call, x4, weight4, bias, window, out)
    else:
        made = _lower_plain(call, x4, weight4, bias, window, out)
    view = made.with_ones(call.shape)
    return view if view is not None else made


def _lower_plain(
    call: Call, x: Value, weight: Value, bias: Value | None, window: Window, out: tuple[int, ...]
) -> Value:
    quantization = call.output_quantization()
    groups, channels = int(call["groups"]), x.shape[1]
    tensor, mode = pad_window(call, x, window, out[2:])
    depthwise = groups == channels and groups > 1
    order = (1, 2, 3, 0) if depthwise else (0, 2, 3, 1)
    weight_tensor, bias_tensor = weights_and_bias(call, x, weight, order, 0, bias)
    activation = fuse_activation(call)
    value, made = call.result(NHWC, quantization, out)
    options = {
        "padding": mode, "stride_h": window.stride[0], "stride_w": window.stride[1],
        "dilation_h_factor": window.dilation[0], "dilation_w_factor": window.dilation[1],
        "fused_activation_function": activation,
    }  # fmt: skip
    if depthwise:
        options["depth_multiplier"] = out[1] // channels
    code = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D"
    call.emit(code, [tensor, weight_tensor, bias_tensor], [made], **options)
    return value
