"""Mean over any dimensions; global average pooling arrives as one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.layout import Value
from openneutron.executorch.lower.ops._reduce import lower_reduction
from openneutron.executorch.operators import annotates, lowers

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.mean.dim", "aten.mean.default", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """A mean lies within the range of what it averages."""
    a.shared(node)


@lowers("aten.mean.dim", cpu="reduce")
def lower(call: Call) -> Value:
    """MEAN."""
    return lower_reduction(call, "MEAN", call.activation("self"), call.output_quantization())
