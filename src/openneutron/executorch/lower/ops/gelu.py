"""GELU, exact or by the tanh formula."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.ops._unary import lower_unary
from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.gelu.default", "aten.gelu_.default")
def annotate(node: Node, a: Annotator) -> None:
    """Give the result its own range."""
    a.unary(node)


@lowers("aten.gelu.default", cpu="table")
def lower(call: Call) -> Value:
    """Lower to GELU."""
    return lower_unary(call, "GELU", approximate=call["approximate"] == "tanh")
