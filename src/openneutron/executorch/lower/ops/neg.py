"""Negation: LiteRT's NEG ignores zero points, so it is a table or a subtraction from zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers
from openneutron.litert.graph import Quantization

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.neg.default", "aten.neg_.default", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Give the result its own range, which is the mirrored range of the input."""
    a.unary(node)


@lowers("aten.neg.default", table=True)
def lower(call: Call) -> Value:
    """Lower to a table; for NXP's converter to SUB(0, x)."""
    x = call.activation("self")
    assert x.quantization is not None
    order = call.common_order([x])
    zero = call.constant("zero", np.zeros((1,) * x.rank), x.storage.dtype, Quantization(x.quantization.scale, (0,)))
    value, made = call.result(order, call.output_quantization())
    call.emit("SUB", [zero, call.tensor(x, order)], [made], fused_activation_function="NONE")
    return value
