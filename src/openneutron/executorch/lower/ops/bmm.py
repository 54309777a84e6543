"""Products of activations, batched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.values import Order, Value, plain
from openneutron.executorch.operators import annotates, lowers
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator

_SWAPPED: Order = (0, 2, 1)


@annotates("aten.bmm.default", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Give both operands and the result their own ranges."""
    a.compute(node, list(node.args[:2]))


@limit("both matrices must be quantized INT8")
def quantized_matrices(call: Call) -> Verdict:
    """Either may be a constant."""
    for name in ("self", "mat2"):
        value = call.value(name)
        if value.quantization is None or value.quantization.per_channel:
            return no(f"{value.storage.name} is {value.storage.dtype}, not INT8 per tensor")
    return OK


@lowers("aten.bmm.default", limits=(quantized_matrices,), layout="plain", cpu="matmul")
def lower(call: Call) -> Value:
    """Lower to BATCH_MATMUL; a transposed operand is read as it is, with a flag."""
    orders = [_SWAPPED if _exists_swapped(call, call.value(name)) else plain(3) for name in ("self", "mat2")]
    tensors = [call.tensor(call.value(name), order) for name, order in zip(("self", "mat2"), orders, strict=True)]
    value, made = call.result(plain(3), call.output_quantization())
    call.emit("BATCH_MATMUL", tensors, [made], adj_x=orders[0] == _SWAPPED, adj_y=orders[1] == _SWAPPED)
    return value


def _exists_swapped(call: Call, value: Value) -> bool:
    return not call.layouts.available(value, plain(3)) and call.layouts.available(value, _SWAPPED)
