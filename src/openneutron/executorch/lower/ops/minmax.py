"""Element-wise maximum and minimum of two tensors, with any broadcasting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.fx import operator_name
from openneutron.executorch.lower.ops._binary import lower_binary, quantized_operands, same_quantization
from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator

_CODES = {"aten.maximum.default": "MAXIMUM", "aten.minimum.default": "MINIMUM"}


@annotates(*_CODES, wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Share the quantization parameters of inputs and output: stored values are compared without rescaling."""
    a.share_parameters(node, node.args[:2])


@lowers(*_CODES, limits=(quantized_operands,))
def lower(call: Call) -> Value:
    """Lower to MAXIMUM or MINIMUM; an operand with other parameters than the result is requantized before."""
    quantization = call.output_quantization()
    operands = same_quantization(call, quantization)
    return lower_binary(call, _CODES[operator_name(call.node)], operands, quantization)
