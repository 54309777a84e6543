"""Rows written at a position known only at run time: `cache.index_copy_(2, pos, k)`, `cache[:, :, pos] = k`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchao.quantization.pt2e.quantizer import SharedQuantizationSpec

from openneutron.executorch.fx import value_of
from openneutron.executorch.lower.ops._positions import position_tensor, starts_tensor
from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.index_put.default", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Store the tensor with the parameters of what is written into it: rows are copied, not requantized."""
    whole, rows = a.argument(node, "self"), a.argument(node, "values")
    if not a.is_float(whole) or not a.is_float(rows):
        return
    share = SharedQuantizationSpec((rows, node))
    a.write(node, {rows: a.input_spec(rows), whole: share}, share)


def _place(indices: Any) -> tuple[int, Node] | None:
    """Return the one dimension that is indexed, and its positions."""
    named = [(at, one) for at, one in enumerate(indices) if one is not None]
    return named[0] if len(named) == 1 else None


@limit("one dimension may be indexed, by one position, and rows replace what is there")
def one_position(call: Call) -> Verdict:
    """Writing by masks or by several positions stays on the CPU."""
    found = _place(call["indices"])
    if found is None:
        return no("several dimensions are indexed", hint="index one dimension")
    count = value_of(found[1]).numel()
    if call["accumulate"]:
        return no("rows are added", hint="use accumulate=False")
    if str(value_of(found[1]).dtype) not in ("torch.int32", "torch.int64"):
        return no(f"the index is {value_of(found[1]).dtype}", hint="give the position as int64")
    return OK if count == 1 else no(f"{count} positions are given", hint="write one row a call")


@lowers("aten.index_put.default", limits=(one_position,), shape_only=True, indices=True, cpu="move")
def lower(call: Call) -> Value:
    """Lower to DYNAMIC_UPDATE_SLICE."""
    x, rows = call.quantized_argument("self"), call.quantized_argument("values")
    found = _place(call["indices"])
    assert found is not None
    dim, index = found
    box = tuple(1 if at == dim else size for at, size in enumerate(x.shape))
    order = call.common_order([x])
    update = rows.with_ones(box)
    if update is None:
        raise call.reject("other_shape", f"rows of {list(rows.shape)} are repeated to {list(box)}", "expand them first")
    starts = starts_tensor(call, position_tensor(call, index), x.rank, order.index(dim))
    value, made = call.result(order, x.quantization, dtype=x.storage.dtype)
    call.emit("DYNAMIC_UPDATE_SLICE", [call.tensor(x, order), call.tensor(update, order), starts], [made])
    return value
