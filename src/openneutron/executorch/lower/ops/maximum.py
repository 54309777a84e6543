"""Element-wise maximum of two tensors, with any broadcasting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.layout import Value
from openneutron.executorch.lower.ops._binary import lower_binary, quantized_operands, same_quantization
from openneutron.executorch.operators import annotates, lowers

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.maximum.default", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Stored values are compared as they are, so all parameters are shared."""
    a.shared(node, node.args[:2])


@lowers("aten.maximum.default", limits=(quantized_operands,))
def lower(call: Call) -> Value:
    """MAXIMUM; an operand with other parameters than the result is requantized before."""
    quantization = call.output_quantization()
    return lower_binary(call, "MAXIMUM", same_quantization(call, quantization), quantization)
