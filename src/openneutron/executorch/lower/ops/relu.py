"""ReLU, where nothing before it could take it over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.layout import Value
from openneutron.executorch.lower.ops._clamp import finite_bounds, lower_clamp
from openneutron.executorch.operators import annotates, lowers

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.relu.default", "aten.relu_.default", "aten.relu6.default", "aten.relu6_.default", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Its own range out: half of the input's would be wasted."""
    a.unary(node)


@lowers("aten.relu.default", "aten.relu6.default", limits=(finite_bounds,), activation=True)
def lower(call: Call) -> Value:
    """RELU or RELU6, requantizing."""
    return lower_clamp(call)
