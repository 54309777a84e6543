"""Maximum over any dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.layout import Value
from openneutron.executorch.lower.ops._reduce import lower_reduction
from openneutron.executorch.operators import annotates, lowers

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.amax.default", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Stored values are compared as they are, so the parameters are shared."""
    a.shared(node)


@lowers("aten.amax.default", cpu="reduce")
def lower(call: Call) -> Value:
    """REDUCE_MAX."""
    x = call.activation("self")
    return lower_reduction(call, "REDUCE_MAX", x, x.quantization)
