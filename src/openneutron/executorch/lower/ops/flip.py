"""Flip: reverses dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers
from openneutron.litert.graph import DType

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.flip.default")
def annotate(node: Node, a: Annotator) -> None:
    """Share the quantization parameters of input and output: stored values only move."""
    a.share_parameters(node)


@lowers("aten.flip.default", cpu="move")
def lower(call: Call) -> Value:
    """Lower to a GATHER with descending indices for each dimension; LiteRT's REVERSE_V2 has no kernel here."""
    value = call.activation("self")
    order = call.common_order([value])
    for dim in {call.dim(one, value.rank) for one in call["dims"]}:
        falling = call.constant(f"indices_{dim}", range(value.shape[dim] - 1, -1, -1), DType.INT32)
        source = call.tensor(value, order)
        value, made = call.result(order, value.quantization, value.shape, name=f"{call.node.name}_{dim}")
        call.emit("GATHER", [source, falling], [made], axis=order.index(dim), batch_dims=0)
    return value
