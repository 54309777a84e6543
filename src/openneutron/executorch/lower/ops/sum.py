"""Sum over any dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.layout import Value
from openneutron.executorch.lower.ops._reduce import lower_reduction
from openneutron.executorch.operators import annotates, lowers

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.sum.dim_IntList", "aten.sum.default")
def annotate(node: Node, a: Annotator) -> None:
    """Its own range out: a sum of n is up to n times as large."""
    a.unary(node)


@lowers("aten.sum.dim_IntList", cpu="reduce")
def lower(call: Call) -> Value:
    """SUM."""
    return lower_reduction(call, "SUM", call.activation("self"), call.output_quantization())
