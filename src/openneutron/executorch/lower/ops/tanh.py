"""The hyperbolic tangent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.layout import Value
from openneutron.executorch.lower.ops._unary import lower_unary
from openneutron.executorch.operators import annotates, lowers

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.tanh.default", "aten.tanh_.default", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Results lie between -1 and 1: steps of 1/128 around 0, as LiteRT's converters write it."""
    a.fixed_output(node, 1 / 128, 0)


@lowers("aten.tanh.default", cpu="table", wide_tolerance=4)
def lower(call: Call) -> Value:
    """TANH; of 16 bits LiteRT interpolates in a table, which is off by up to four steps."""
    return lower_unary(call, "TANH")
