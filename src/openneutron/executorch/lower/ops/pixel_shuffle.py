"""Pixel shuffle: channels become pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.values import Value, channels_last, plain
from openneutron.executorch.operators import annotates, lowers
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.pixel_shuffle.default")
def annotate(node: Node, a: Annotator) -> None:
    """Share the quantization parameters of input and output: stored values are copied."""
    a.share_parameters(node)


@limit("the input must be an image [N, C, H, W]")
def batched_image(call: Call) -> Verdict:
    """PyTorch takes any number of leading dimensions."""
    rank = call.value("self").rank
    return OK if rank == 4 else no(f"it has {rank} dimensions")


@lowers("aten.pixel_shuffle.default", limits=(batched_image,), shape_only=True, cpu="move")
def lower(call: Call) -> Value:
    """Split the channels into [C, r, r], move both r behind their pixels, join them."""
    x = call.activation("self")
    factor = int(call["upscale_factor"])
    n, c, h, w = x.shape
    order = call.common_order([x])
    # In memory the channels are one run, wherever they lie; so are their parts after the split.
    parts = {0: (0,), 1: (1, 2, 3), 2: (4,), 3: (5,)}
    split, made = call.result(
        tuple(part for dim in order for part in parts[dim]), x.quantization,
        (n, c // factor**2, factor, factor, h, w), f"{call.node.name}_split",
    )  # fmt: skip
    _reshape(call, call.tensor(x, order), made)
    joined = (0, 4, 2, 5, 3, 1) if order == channels_last(4) else (0, 1, 4, 2, 5, 3)
    value, result = call.result(channels_last(4) if order == channels_last(4) else plain(4), x.quantization)
    _reshape(call, call.tensor(split, joined), result)
    return value


def _reshape(call: Call, source: int, made: int) -> None:
    shape = list(call.lowering.builder.graph.tensors[made].shape)
    call.emit("RESHAPE", [source, call.layouts.shape_tensor(shape)], [made], new_shape=shape)
