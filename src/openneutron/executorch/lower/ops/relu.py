"""ReLU that could not be fused into the operator before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.ops._clamp import finite_bounds, lower_clamp
from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.relu.default", "aten.relu_.default", "aten.relu6.default", "aten.relu6_.default", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Give the result its own range: half of the input's would be unused."""
    a.unary(node)


@lowers("aten.relu.default", "aten.relu6.default", limits=(finite_bounds,), activation=True)
def lower(call: Call) -> Value:
    """Lower to RELU or RELU6, which requantizes."""
    return lower_clamp(call)
