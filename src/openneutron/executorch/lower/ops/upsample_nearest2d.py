"""Nearest-neighbour resize."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from openneutron.executorch.lower.ops._resize import image_name, is_batch_of_images, resize, scales
from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.upsample_nearest2d.vec", "aten.upsample_nearest2d.default", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Share the quantization parameters of input and output: stored values are copied."""
    a.share_parameters(node)


@limit("PyTorch and LiteRT must pick the same pixels")
def same_pixels(call: Call) -> Verdict:
    """The pixels may differ for a scale factor that gives no whole output size."""
    x = call.value(image_name(call))
    for axis, scale in enumerate(scales(call)):
        size, out = x.shape[2 + axis], call.shape[2 + axis]
        at = np.arange(out, dtype=np.float32)
        torch_picks = np.minimum(np.floor(at * np.float32(scale)), size - 1)
        litert_picks = np.minimum(np.floor(at * (np.float32(size) / np.float32(out))), size - 1)
        if not np.array_equal(torch_picks, litert_picks):
            return no(f"{size} to {out} pixels at a factor of {1 / scale:g}", hint="give the output size instead")
    return OK


@lowers(
    "aten.upsample_nearest2d.vec", "aten.upsample_nearest2d.default", limits=(is_batch_of_images, same_pixels),
    layout="channels_last",
    cpu="move",
)  # fmt: skip
def lower(call: Call) -> Value:
    """Lower to RESIZE_NEAREST_NEIGHBOR."""
    return resize(call, "RESIZE_NEAREST_NEIGHBOR", align_corners=False, half_pixel_centers=False)
