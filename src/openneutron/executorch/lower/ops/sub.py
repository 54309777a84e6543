"""Subtraction of two tensors, with any broadcasting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.layout import Value
from openneutron.executorch.lower.ops._activation import fuse_activation
from openneutron.executorch.lower.ops._binary import by_a_number, lower_binary, quantized_operands
from openneutron.executorch.operators import annotates, lowers
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.sub.Tensor", "aten.sub_.Tensor", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Each operand and the result have ranges of their own."""
    a.compute(node, list(node.args[:2]))


@limit("alpha must be 1")
def unscaled(call: Call) -> Verdict:
    """LiteRT has no factor there."""
    return OK if call["alpha"] == 1 else no(f"alpha is {call['alpha']}", hint="multiply the second operand before")


@lowers("aten.sub.Tensor", limits=(unscaled, quantized_operands), table=by_a_number)
def lower(call: Call) -> Value:
    """SUB with its fused activation; with a number beside the tensor a table."""
    quantization = call.output_quantization()
    activation = fuse_activation(call)
    operands = call.value("self"), call.value("other")
    return lower_binary(call, "SUB", operands, quantization, fused_activation_function=activation)
