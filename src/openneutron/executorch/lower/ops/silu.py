"""SiLU (swish), kept whole because its decomposition has no quantized values inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.ops.sigmoid import OUTPUT
from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.silu.default", "aten.silu_.default")
def annotate(node: Node, a: Annotator) -> None:
    """Give the result its own range."""
    a.unary(node)


# Half a step of the rounded sigmoid times the largest input is about half a step of the result, on top of its own.
@lowers("aten.silu.default", preserve=True, table=True, tolerance=2, cpu="table")
def lower(call: Call) -> Value:
    """Lower to a table; for NXP's converter to LOGISTIC, then MUL with the input."""
    x = call.activation("self")
    quantization = call.output_quantization()
    order = call.common_order([x])
    source = call.tensor(x, order)
    _, gate = call.result(order, OUTPUT, name=f"{call.node.name}_gate")
    call.emit("LOGISTIC", [source], [gate])
    value, made = call.result(order, quantization)
    call.emit("MUL", [source, gate], [made], fused_activation_function="NONE")
    return value
