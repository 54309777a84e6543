"""Pixel shuffle: channels become pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.layout import Value, plain
from openneutron.executorch.ops import annotates, lowers
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.call import Call
    from openneutron.executorch.quantizer.annotator import Annotator


@annotates("aten.pixel_shuffle.default")
def annotate(node: Node, a: Annotator) -> None:
    """Stored values are copied, so the parameters are shared."""
    a.shared(node)


@limit("the input must be an image [N, C, H, W]")
def batched_image(call: Call) -> Verdict:
    """PyTorch takes any number of leading dimensions."""
    rank = call.value("self").rank
    return OK if rank == 4 else no(f"it has {rank} dimensions")


@lowers("aten.pixel_shuffle.default", limits=(batched_image,), shape_only=True)
def lower(call: Call) -> Value:
    """Split the channels into [C, r, r], move both r behind their pixels, join them."""
    x = call.activation("self")
    factor = int(call["upscale_factor"])
    n, c, h, w = x.shape
    split = (n, c // factor**2, factor, factor, h, w)
    parts, made = call.result(plain(6), x.quantization, split, f"{call.node.name}_split")
    call.emit("RESHAPE", [call.tensor(x, plain(4)), call.layouts.shape_tensor(split)], [made], new_shape=list(split))
    moved = call.tensor(parts.permuted((0, 1, 4, 2, 5, 3)), plain(6))
    value, joined = call.result(plain(4), x.quantization)
    call.emit("RESHAPE", [moved, call.layouts.shape_tensor(call.shape)], [joined], new_shape=list(call.shape))
    return value
