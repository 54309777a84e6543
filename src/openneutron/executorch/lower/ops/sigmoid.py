"""The logistic function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.ops._unary import lower_unary
from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers
from openneutron.litert.graph import DType, Quantization

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator

# LiteRT's kernel accepts no other scale: results lie between 0 and 1 in steps of 1/256.
OUTPUT = Quantization((1 / 256,), (-128,))
WIDE_OUTPUT = Quantization((2.0**-15,), (0,))


@annotates("aten.sigmoid.default", "aten.sigmoid_.default", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Use the known range of results, 0 to 1."""
    a.fixed_output(node, OUTPUT.scale[0], OUTPUT.zero_point[0])


@lowers("aten.sigmoid.default", cpu="table", wide_tolerance=2)
def lower(call: Call) -> Value:
    """Lower to LOGISTIC; if the reader has other quantization parameters, a QUANTIZE follows."""
    call.output_quantization()  # rejects a result that is read in float
    return lower_unary(call, "LOGISTIC", OUTPUT if call.dtype is DType.INT8 else WIDE_OUTPUT)
