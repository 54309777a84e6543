"""Expansion of dimensions of size 1, and repetition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.ops._binary import widen
from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers
from openneutron.litert.graph import DType

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.expand.default", "aten.expand_as.default", "aten.repeat.default", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Share the quantization parameters of input and output: stored values are copied."""
    a.share_parameters(node)


@lowers("aten.expand_copy.default", "aten.repeat.default", shape_only=True, cpu="move")
def lower(call: Call) -> Value:
    """Lower to TILE, or to nothing where the shape does not change."""
    x = widen(call.value("self"), len(call.shape))
    if x.shape == call.shape:
        return x
    order = call.common_order([x])
    source = call.tensor(x, order)
    multiples = call.constant("multiples", [call.shape[dim] // x.shape[dim] for dim in order], DType.INT32)
    value, made = call.result(order, x.quantization)
    call.emit("TILE", [source, multiples], [made])
    return value
