"""Adaptive average pooling; to 1x1 it arrives as a mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.layout import Value
from openneutron.executorch.ops import annotates, lowers
from openneutron.executorch.ops._window import NHWC, Window
from openneutron.executorch.ops.avg_pool2d import average
from openneutron.executorch.ops.max_pool2d import is_image
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.call import Call
    from openneutron.executorch.quantizer.annotator import Annotator


@annotates("aten.adaptive_avg_pool2d.default", "aten.adaptive_avg_pool1d.default", "aten._adaptive_avg_pool2d.default")
def annotate(node: Node, a: Annotator) -> None:
    """An average lies within the range of what it averages."""
    a.shared(node)


@limit("output sizes must divide input sizes")
def sizes_divide(call: Call) -> Verdict:
    """Else windows overlap and differ in size."""
    sizes, out = call.value("self").shape[-2:], call.shape[-2:]
    divides = all(size % wanted == 0 for size, wanted in zip(sizes, out, strict=True))
    return (
        OK if divides else no(f"{sizes[0]}x{sizes[1]} to {out[0]}x{out[1]}", hint="choose an output size that divides")
    )


@lowers("aten._adaptive_avg_pool2d.default", limits=(is_image, sizes_divide), layout="channels_last")
def lower(call: Call) -> Value:
    """AVERAGE_POOL_2D with windows that tile the image."""
    x = call.activation("self")
    shape = call.shape
    if x.rank == 3:
        batched = x.with_ones((1, *x.shape))
        assert batched is not None
        x, shape = batched, (1, *shape)
    step = (x.shape[2] // shape[2], x.shape[3] // shape[3])
    return average(call, x, call.tensor(x, NHWC), Window(step, step, (0, 0)), "VALID", shape)
