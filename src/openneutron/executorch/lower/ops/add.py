"""Addition and subtraction of two tensors, with any broadcasting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.fx import operator_name
from openneutron.executorch.lower.ops._activation import fuse_activation
from openneutron.executorch.lower.ops._binary import by_a_number, lower_binary, quantized_operands
from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


_CODES = {"aten.add.Tensor": "ADD", "aten.sub.Tensor": "SUB"}


@annotates(*_CODES, "aten.add_.Tensor", "aten.sub_.Tensor", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Give each operand and the result its own range, unless one of two values is taken as a whole."""
    if not a.choice(node):
        a.compute(node, list(node.args[:2]))


@limit("alpha must be 1")
def unscaled(call: Call) -> Verdict:
    """LiteRT has no factor there."""
    return OK if call["alpha"] == 1 else no(f"alpha is {call['alpha']}", hint="multiply the second operand before")


@lowers(*_CODES, limits=(unscaled, quantized_operands), table=by_a_number)
def lower(call: Call) -> Value:
    """Lower to ADD or SUB with its fused activation; a tensor and a number become a table."""
    quantization = call.output_quantization()
    activation = fuse_activation(call)
    operands = call.value("self"), call.value("other")
    return lower_binary(
        call, _CODES[operator_name(call.node)], operands, quantization, fused_activation_function=activation
    )
