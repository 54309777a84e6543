"""Permute and transpose: views of the same value; data moves only when an operator needs another order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.permute.default", "aten.transpose.int", "aten.t.default", "aten.numpy_T.default", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Share the quantization parameters of input and output: stored values do not change."""
    a.share_parameters(node)


@lowers("aten.permute_copy.default", shape_only=True, cpu="move")
def lower(call: Call) -> Value:
    """Return a permuted view."""
    x = call.value("self")
    return x.permute([call.dim(dim, x.rank) for dim in call["dims"]])


@lowers("aten.transpose_copy.int", shape_only=True, cpu="move")
def lower_transpose(call: Call) -> Value:
    """Return a view with two dimensions exchanged."""
    x = call.value("self")
    order = list(range(x.rank))
    first, second = call.dim(call["dim0"], x.rank), call.dim(call["dim1"], x.rank)
    order[first], order[second] = second, first
    return x.permute(order)


@lowers("aten.t_copy.default", shape_only=True, cpu="move")
def lower_t(call: Call) -> Value:
    """Return the transposed view of a matrix."""
    x = call.value("self")
    return x.permute(tuple(reversed(range(x.rank))))
