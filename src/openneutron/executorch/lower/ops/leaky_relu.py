"""Leaky ReLU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.ops._unary import lower_unary
from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.leaky_relu.default", "aten.leaky_relu_.default", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Give the result its own range."""
    a.unary(node)


@lowers("aten.leaky_relu.default")
def lower(call: Call) -> Value:
    """Lower to LEAKY_RELU."""
    return lower_unary(call, "LEAKY_RELU", alpha=float(call["negative_slope"]))
