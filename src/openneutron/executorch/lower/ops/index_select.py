"""Rows picked by a list of positions, constant or known only at run time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from openneutron.executorch.lower.ops._positions import index_tensor
from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers
from openneutron.litert.graph import DType

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.index_select.default", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Share the quantization parameters of input and output: stored values are copied."""
    a.share_parameters(node)


@lowers("aten.index_select.default", shape_only=True, indices=True)
def lower(call: Call) -> Value:
    """Lower to GATHER."""
    x = call.quantized_argument("self")
    order = call.common_order([x])
    if call["index"] not in call.lowering.constants:
        dim = call.dim(call["dim"], x.rank)
        value, made = call.result(order, x.quantization, dtype=x.storage.dtype)
        positions = index_tensor(call, call["index"])
        call.emit("GATHER", [call.tensor(x, order), positions], [made], axis=order.index(dim), batch_dims=0)
        return value
    dim = call.dim(call["dim"], x.rank)
    picked = call.lowering.constants.require(call["index"], call.node, "the positions")
    indices = call.constant("positions", np.mod(picked, x.shape[dim]), DType.INT32)
    value, made = call.result(order, x.quantization, dtype=x.storage.dtype)
    call.emit("GATHER", [call.tensor(x, order), indices], [made], axis=order.index(dim), batch_dims=0)
    return value
