"""Rows of a table looked up by tokens or positions known only at run time: `nn.Embedding`, `table[pos]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from openneutron.executorch.fx import operator_name, value_of
from openneutron.executorch.lower.ops._positions import index_tensor
from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.embedding.default", "aten.index.Tensor", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Share the quantization parameters of table and result: stored values are copied.

    Beside 4-bit weights an embedding of 16-bit activations has 8 bits: its rows are requantized when they are read.
    """
    table = node.args[0]
    narrow = a.specs.weights == "int4" and a.dtype is torch.int16 and operator_name(node) == "aten.embedding.default"
    if narrow and isinstance(table, Node) and table.op == "get_attr" and a.is_float(table):
        a.write(node, {table: a.specs.table()}, a.activation())
    else:
        a.share_parameters(node)


def _looked_up(call: Call) -> tuple[str, int, Any]:
    """Return the name of the table's argument, the dimension that is indexed and the index; no index: None."""
    if "weight" in call.arguments:
        return "weight", 0, call["indices"]
    named = [(at, one) for at, one in enumerate(call["indices"]) if one is not None]
    return ("self", *named[0]) if len(named) == 1 else ("self", 0, None)


@limit("one dimension may be indexed, by INT32 or INT64 positions")
def one_index(call: Call) -> Verdict:
    """Indexing several dimensions at once, or by a mask, stays on the CPU."""
    _, _, index = _looked_up(call)
    if index is None:
        return no("several dimensions are indexed", hint="index one dimension after another")
    kind = value_of(index).dtype
    return OK if str(kind) in ("torch.int32", "torch.int64") else no(f"the index is {kind}")


@lowers("aten.embedding.default", "aten.index.Tensor", limits=(one_index,), shape_only=True, indices=True, cpu="move")
def lower(call: Call) -> Value:
    """Lower to GATHER."""
    table, dim, index = _looked_up(call)
    x = call.quantized_argument(table)
    order = tuple(range(x.rank))
    value, made = call.result(tuple(range(len(call.shape))), x.quantization, dtype=x.storage.dtype)
    call.emit("GATHER", [call.tensor(x, order), index_tensor(call, index)], [made], axis=dim, batch_dims=0)
    return value
