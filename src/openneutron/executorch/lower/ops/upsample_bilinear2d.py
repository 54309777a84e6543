"""Bilinear resize."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.ops._resize import image_name, is_batch_of_images, resize, scales
from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.upsample_bilinear2d.vec", "aten.upsample_bilinear2d.default", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Share the input's quantization parameters: an interpolated value lies within the range of its neighbours."""
    a.share_parameters(node)


@limit("the scale factor must be the ratio of the sizes")
def whole_sizes(call: Call) -> Verdict:
    """LiteRT knows only sizes."""
    x = call.value(image_name(call))
    for axis, scale in enumerate(scales(call)):
        size, out = x.shape[2 + axis], call.shape[2 + axis]
        if not call["align_corners"] and abs(scale * out - size) > 1e-6 * size:
            return no(f"{size} to {out} pixels at a factor of {1 / scale:g}", hint="give the output size instead")
    return OK


# LiteRT interpolates with 10 fractional bits: a third is not one of them.
@lowers(
    "aten.upsample_bilinear2d.vec", "aten.upsample_bilinear2d.default", limits=(is_batch_of_images, whole_sizes),
    layout="channels_last", tolerance=2,
    cpu="interpolate",
)  # fmt: skip
def lower(call: Call) -> Value:
    """Lower to RESIZE_BILINEAR; without align_corners PyTorch uses pixel centres."""
    align = bool(call["align_corners"])
    return resize(call, "RESIZE_BILINEAR", align_corners=align, half_pixel_centers=not align)
