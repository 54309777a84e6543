"""PReLU, kept whole because its decomposition has no quantized values inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.prelu.default")
def annotate(node: Node, a: Annotator) -> None:
    """Give input, slopes and output their own ranges."""
    a.compute(node, [node.args[0]], {node.args[1]: a.activation()})


@limit("the slopes must be constant and quantized")
def constant_slopes(call: Call) -> Verdict:
    """They become a constant of PRELU."""
    slopes = call.value("weight")
    return (
        OK if slopes.is_constant and slopes.quantization is not None else no("they are computed at run time or float")
    )


@lowers("aten.prelu.default", limits=(constant_slopes,), preserve=True)
def lower(call: Call) -> Value:
    """Lower to PRELU with one slope, or one per channel."""
    x, slopes = call.activation("self"), call.value("weight")
    shape = [1] * x.rank
    if x.rank > 1:
        shape[1] = slopes.shape[0]
    wide = slopes.with_ones(shape)
    assert wide is not None
    order = call.common_order([x])
    value, made = call.result(order, call.output_quantization())
    call.emit("PRELU", [call.tensor(x, order), call.tensor(wide, order)], [made])
    return value
