"""Rows picked by a constant list."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers
from openneutron.litert.graph import DType
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.index_select.default", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Share the quantization parameters of input and output: stored values are copied."""
    a.shared(node)


@limit("the positions must be constant")
def constant_positions(call: Call) -> Verdict:
    """Lookups with computed positions stay on the CPU."""
    index = call["index"]
    return OK if index in call.lowering.constants else no(f"{index.name} is computed at run time")


@lowers("aten.index_select.default", limits=(constant_positions,), shape_only=True)
def lower(call: Call) -> Value:
    """Lower to GATHER."""
    x = call.activation("self")
    order = call.common_order([x])
    dim = call.dim(call["dim"], x.rank)
    picked = call.lowering.constants.require(call["index"], call.node, "the positions")
    indices = call.constant("positions", np.mod(picked, x.shape[dim]), DType.INT32)
    value, made = call.result(order, x.quantization)
    call.emit("GATHER", [call.tensor(x, order), indices], [made], axis=order.index(dim), batch_dims=0)
    return value
