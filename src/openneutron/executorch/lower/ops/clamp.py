"""Clamp and hardtanh."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.ops._clamp import finite_bounds, has_odd_bounds, lower_clamp
from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.clamp.default", "aten.clamp_.default", "aten.hardtanh.default", "aten.hardtanh_.default", wide=True)
@annotates("aten.clamp_min.default", "aten.clamp_max.default", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Give the result its own range."""
    a.unary(node)


@lowers("aten.clamp.default", "aten.hardtanh.default", limits=(finite_bounds,), activation=True, table=has_odd_bounds)
def lower(call: Call) -> Value:
    """Lower to a form of RELU or a table; for NXP's converter to MAXIMUM and MINIMUM with constants."""
    return lower_clamp(call)
