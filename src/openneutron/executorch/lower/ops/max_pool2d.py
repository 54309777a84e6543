"""Max pooling; one-dimensional pooling arrives as two-dimensional."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from openneutron.executorch.fx import GETITEM, operator_name
from openneutron.executorch.lower.ops._window import NHWC, Window, pad_window
from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.max_pool2d.default", "aten.max_pool1d.default", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Share the input's quantization parameters: stored values are compared without rescaling."""
    a.share_parameters(node)


@limit("the indices of max_pool must not be used")
def indices_unused(call: Call) -> Verdict:
    """LiteRT has no such result."""
    readers = [user for user in call.node.users if operator_name(user) == GETITEM and user.args[1] == 1 and user.users]
    return no(f"{readers[0].name} reads them", hint="pool without return_indices") if readers else OK


@limit("dilation must be 1")
def undilated(call: Call) -> Verdict:
    """LiteRT has no dilation in pooling."""
    dilation = call.numbers("dilation", 2)
    return OK if dilation == (1, 1) else no(f"dilation is {dilation}", hint="pool without dilation, or stride before")


@limit("the input must be an image [N, C, H, W] or [C, H, W]")
def is_image(call: Call) -> Verdict:
    """PyTorch takes both."""
    rank = call.value("self").rank
    return OK if rank in (3, 4) else no(f"it has {rank} dimensions")


@lowers(
    "aten.max_pool2d_with_indices.default",
    limits=(is_image, indices_unused, undilated),
    layout="channels_last",
    cpu="pool",
)
def lower(call: Call) -> Value:
    """Lower to MAX_POOL_2D; ceil_mode and paddings that LiteRT lacks become a PADV2 with the lowest value."""
    x = call.activation("self")
    shape = call.shape
    if x.rank == 3:
        batched = x.with_ones((1, *x.shape))
        assert batched is not None
        x, shape = batched, (1, *shape)
    kernel = call.numbers("kernel_size", 2)
    window = Window(
        kernel=(kernel[0], kernel[1]), stride=_pair(call.numbers("stride", 2, kernel)),
        padding=_pair(call.numbers("padding", 2)),
    )  # fmt: skip
    tensor, mode = pad_window(call, x, window, shape[2:], _lowest(x))
    value, made = call.result(NHWC, x.quantization, shape)
    call.emit(
        "MAX_POOL_2D", [tensor], [made], padding=mode, stride_h=window.stride[0], stride_w=window.stride[1],
        filter_height=window.kernel[0], filter_width=window.kernel[1], fused_activation_function="NONE",
    )  # fmt: skip
    view = value.with_ones(call.shape)
    return view if view is not None else value


def _lowest(x: Value) -> int:
    """Return the lowest stored value: PyTorch pads with minus infinity."""
    return int(np.iinfo(x.storage.dtype.numpy).min)


def _pair(numbers: tuple[int, ...]) -> tuple[int, int]:
    return numbers[0], numbers[1]
