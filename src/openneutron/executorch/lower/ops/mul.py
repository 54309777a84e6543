"""Multiplication of two tensors, with any broadcasting; division by a number arrives as one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.ops._activation import fuse_activation
from openneutron.executorch.lower.ops._binary import by_a_number, lower_binary, quantized_operands
from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.mul.Tensor", "aten.mul_.Tensor", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Give each operand and the result its own range, unless one of two values is taken as a whole."""
    if not a.choice(node):
        a.compute(node, list(node.args[:2]))


@lowers("aten.mul.Tensor", limits=(quantized_operands,), table=by_a_number)
def lower(call: Call) -> Value:
    """Lower to MUL with its fused activation; a tensor and a number become a table."""
    quantization = call.output_quantization()
    activation = fuse_activation(call)
    operands = call.value("self"), call.value("other")
    return lower_binary(call, "MUL", operands, quantization, fused_activation_function=activation)
