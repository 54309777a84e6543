"""Rows written at positions known only at run time: `cache.index_copy_(2, pos, k)`, `cache[:, :, pos] = k`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from torchao.quantization.pt2e.quantizer import SharedQuantizationSpec

from openneutron.executorch.fx import value_of
from openneutron.executorch.lower.ops._positions import position_tensor, starts_tensor
from openneutron.executorch.lower.ops._slice import cut
from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator

MOST_POSITIONS: Final = 64  # each is an operator of its own


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


@limit(
    f"one dimension may be indexed, by a vector of at most {MOST_POSITIONS} positions, and rows replace what is there"
)
def vector_of_positions(call: Call) -> Verdict:
    """Writing by masks stays on the CPU."""
    found = _place(call["indices"])
    if found is None:
        return no("several dimensions are indexed", hint="index one dimension")
    positions = value_of(found[1])
    if call["accumulate"]:
        return no("rows are added", hint="use accumulate=False")
    if str(positions.dtype) not in ("torch.int32", "torch.int64"):
        return no(f"the index is {positions.dtype}", hint="give the positions as int64")
    if positions.numel() > MOST_POSITIONS:
        return no(f"{positions.numel()} positions are given", hint="give fewer tokens a call")
    if positions.numel() > 1 and positions.dim() != 1:
        return no(f"positions of {list(positions.shape)} are given", hint="give a vector")
    return OK


@lowers("aten.index_put.default", limits=(vector_of_positions,), shape_only=True, indices=True, cpu="move")
def lower(call: Call) -> Value:
    """Lower to DYNAMIC_UPDATE_SLICE, one for each position: a later row replaces an earlier one at the same position."""
    x, rows = call.quantized_argument("self"), call.quantized_argument("values")
    found = _place(call["indices"])
    assert found is not None
    dim, index = found
    count = value_of(index).numel()
    box, one = (tuple(size if at == dim else n for at, n in enumerate(x.shape)) for size in (count, 1))
    update = rows.with_ones(box)
    if update is None:
        raise call.reject("other_shape", f"rows of {list(rows.shape)} are repeated to {list(box)}", "expand them first")
    order = call.common_order([x])
    for at in range(count):
        row = cut(call, update, [at if axis == dim else 0 for axis in range(x.rank)], one, [1] * x.rank)
        starts = starts_tensor(call, position_tensor(call, index, at), x.rank, order.index(dim))
        written, made = call.result(order, x.quantization, dtype=x.storage.dtype)
        call.emit("DYNAMIC_UPDATE_SLICE", [call.tensor(x, order), call.tensor(row, order), starts], [made])
        x = written
    return x
