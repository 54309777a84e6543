"""Index of the smallest value along one dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.layout import Value
from openneutron.executorch.lower.ops._index import drops_dimension, lower_index, one_dimension
from openneutron.executorch.operators import annotates, lowers

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.argmin.default")
def annotate(node: Node, a: Annotator) -> None:
    """Stored values are compared as they are; the result is an index, which nothing quantizes."""
    a.read(node)


@lowers("aten.argmin.default", limits=(one_dimension, drops_dimension), stored=True, cpu="reduce")
def lower(call: Call) -> Value:
    """ARG_MIN."""
    return lower_index(call, "ARG_MIN")
