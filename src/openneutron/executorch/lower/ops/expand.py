"""Expansion of dimensions of size 1, and repetition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.layout import Value
from openneutron.executorch.lower.ops._binary import widened
from openneutron.executorch.operators import annotates, lowers
from openneutron.litert.graph import DType

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.expand.default", "aten.expand_as.default", "aten.repeat.default", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Stored values are copied, so the parameters are shared."""
    a.shared(node)


@lowers("aten.expand_copy.default", "aten.repeat.default", shape_only=True, cpu="move")
def lower(call: Call) -> Value:
    """TILE; nothing where the shape stays."""
    x = widened(call.value("self"), len(call.shape))
    if x.shape == call.shape:
        return x
    order = call.common_order([x])
    source = call.tensor(x, order)
    multiples = call.constant("multiples", [call.shape[dim] // x.shape[dim] for dim in order], DType.INT32)
    value, made = call.result(order, x.quantization)
    call.emit("TILE", [source, multiples], [made])
    return value
