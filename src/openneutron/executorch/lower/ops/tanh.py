"""The hyperbolic tangent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.ops._unary import lower_unary
from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.tanh.default", "aten.tanh_.default", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Use the known range of results, -1 to 1, in steps of 1/128 around 0 as LiteRT's converters do."""
    a.fixed_output(node, 1 / 128, 0)


@lowers("aten.tanh.default", cpu="table", wide_tolerance=4)
def lower(call: Call) -> Value:
    """Lower to TANH; for 16 bits LiteRT interpolates in a table, with an error of up to four steps."""
    return lower_unary(call, "TANH")
