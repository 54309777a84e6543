"""Hard-sigmoid, kept whole because its decomposition has no quantized values inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from openneutron.executorch.lower.ops.sigmoid import OUTPUT
from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers
from openneutron.litert.graph import DType, Quantization

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.hardsigmoid.default", "aten.hardsigmoid_.default")
def annotate(node: Node, a: Annotator) -> None:
    """Use the known range of results; saturation clamps them to it."""
    a.fixed_output(node, OUTPUT.scale[0], OUTPUT.zero_point[0])


@lowers("aten.hardsigmoid.default", preserve=True, table=True, cpu="table")
def lower(call: Call) -> Value:
    """Lower to a table; for NXP's converter to clamp(x/6 + 1/2, 0, 1).

    There x/6 is the input read at a sixth of its scale, and saturation clamps the sum.
    """
    x = call.activation("self")
    assert x.quantization is not None
    call.output_quantization()  # rejects a result that is read in float
    order = call.common_order([x])
    source = call.tensor(x, order)
    sixth = Quantization((float(np.float32(x.quantization.scale[0] / 6)),), x.quantization.zero_point)
    _, scaled = call.result(order, sixth, name=f"{call.node.name}_sixth")
    shape = [x.shape[dim] for dim in order]
    call.emit("RESHAPE", [source, call.layouts.shape_tensor(shape)], [scaled], new_shape=shape)
    half = call.constant("half", np.ones((1,) * x.rank), DType.INT8, Quantization((0.5,), (0,)))
    value, made = call.result(order, OUTPUT)
    call.emit("ADD", [scaled, half], [made], fused_activation_function="NONE")
    return value
