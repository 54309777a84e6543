"""Adaptive average pooling; PyTorch exports pooling to 1x1 as a mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.ops._pieces import adaptive_spans, average_pieces
from openneutron.executorch.lower.ops._window import NHWC
from openneutron.executorch.lower.ops.max_pool2d import is_image
from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates(
    "aten.adaptive_avg_pool2d.default",
    "aten.adaptive_avg_pool1d.default",
    "aten._adaptive_avg_pool2d.default",
    wide=True,
)
def annotate(node: Node, a: Annotator) -> None:
    """Share the input's quantization parameters: an average lies within the range of its inputs."""
    a.share_parameters(node)


@lowers("aten._adaptive_avg_pool2d.default", limits=(is_image,), layout="channels_last", cpu="pool")
def lower(call: Call) -> Value:
    """Lower to AVERAGE_POOL_2D; windows of different sizes are pooled in pieces."""
    x = call.activation("self")
    shape = call.shape
    if x.rank == 3:
        batched = x.with_ones((1, *x.shape))
        assert batched is not None
        x, shape = batched, (1, *shape)
    spans = [adaptive_spans(x.shape[axis], shape[axis]) for axis in (2, 3)]
    return average_pieces(call, x, call.tensor(x, NHWC), *spans)
