"""Concatenation along any dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.ops._binary import in_quantization
from openneutron.executorch.lower.values import Order, Value, plain
from openneutron.executorch.operators import annotates, lowers
from openneutron.litert.graph import DType
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.cat.default", "aten.concat.default", "aten.concatenate.default", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Share the quantization parameters of inputs and output: stored values are copied."""
    a.share_parameters(node, node.args[0])


@limit("every part must be quantized, at least one computed at run time")
def quantized_parts(call: Call) -> Verdict:
    """Constants among the parts are fine."""
    parts = [call.of(node) for node in call["tensors"]]
    for part in parts:
        if part.quantization is None and not (call.lowering.float_joins and part.storage.dtype is DType.FLOAT32):
            return no(f"{part.storage.name} is {part.storage.dtype}")
    return no("all parts are constant") if all(part.is_constant for part in parts) else OK


@lowers("aten.cat.default", limits=(quantized_parts,), cpu="move")
def lower(call: Call) -> Value:
    """Lower to CONCATENATION; parts with other parameters than the result are requantized before."""
    if call.lowering.float_joins and call.lowering.sink(call.node) is None:
        return _join_in_float(call)
    quantization = call.output_quantization()
    parts = [call.of(node) for node in call["tensors"]]
    parts = [in_quantization(call, part, quantization) for part in parts if part.rank == len(call.shape)]
    order = call.common_order(parts)
    axis = order.index(call.dim(call["dim"], len(call.shape)))
    tensors = [call.tensor(part, order) for part in parts]
    value, made = call.result(order, quantization)
    call.emit("CONCATENATION", tensors, [made], axis=axis, fused_activation_function="NONE")
    return value


def _join_in_float(call: Call) -> Value:
    """Lower to DEQUANTIZE of each part and a CONCATENATION of float32: each part keeps its own scale."""
    order = plain(len(call.shape))
    parts = [part for node in call["tensors"] if (part := call.of(node)).rank == len(call.shape)]
    tensors = [_real_tensor(call, part, order) for part in parts]
    value, made = call.result(order, None, dtype=DType.FLOAT32)
    call.emit(
        "CONCATENATION", tensors, [made], axis=call.dim(call["dim"], len(call.shape)), fused_activation_function="NONE"
    )
    return value


def _real_tensor(call: Call, part: Value, order: Order) -> int:
    if part.quantization is None:
        return call.tensor(part, order)
    _, made = call.result(order, None, part.shape, f"{part.storage.name}_real", DType.FLOAT32)
    call.emit("DEQUANTIZE", [call.tensor(part, order)], [made])
    return made
