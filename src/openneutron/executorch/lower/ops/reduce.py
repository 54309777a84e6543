"""Sum, mean, maximum and minimum over any dimensions; global average pooling arrives as a mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from openneutron.executorch.fx import operator_name
from openneutron.executorch.lower.values import Value, plain
from openneutron.executorch.operators import annotates, lowers
from openneutron.executorch.quantize.passes.replace.replace_sum import OWN_RANGE_KEY
from openneutron.litert.graph import DType, Quantization

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator

_EXTREMES = {"aten.amax.default": "REDUCE_MAX", "aten.amin.default": "REDUCE_MIN"}
_TOTALS = {"aten.sum.dim_IntList": "SUM", "aten.mean.dim": "MEAN"}


@annotates(*_EXTREMES, "aten.mean.dim", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Share the input's quantization parameters: means and extremes lie within the range of the inputs.

    A mean in the place of a 16-bit sum has its own: that of squares is far below the largest square.
    """
    if a.dtype is torch.int16 and node.meta.get(OWN_RANGE_KEY):
        a.unary(node)
    else:
        a.share_parameters(node)


@annotates("aten.sum.dim_IntList", "aten.sum.default")
def annotate_sum(node: Node, a: Annotator) -> None:
    """Give the result its own range: a sum of n values is up to n times as large."""
    a.unary(node)


@lowers(*_EXTREMES, cpu="reduce")
def lower_extreme(call: Call) -> Value:
    """Lower to REDUCE_MAX or REDUCE_MIN, with the input's parameters."""
    x = call.activation("self")
    return _lower(call, _EXTREMES[operator_name(call.node)], x, x.quantization)


@lowers(*_TOTALS, cpu="reduce")
def lower_total(call: Call) -> Value:
    """Lower to SUM or MEAN."""
    return _lower(call, _TOTALS[operator_name(call.node)], call.activation("self"), call.output_quantization())


def _lower(call: Call, code: str, x: Value, quantization: Quantization | None) -> Value:
    """Emit `code` in whatever order the input exists; `dim` (none or empty: all) and `keepdim` are PyTorch's."""
    given = call["dim"]
    numbers = [given] if isinstance(given, int) else list(given or range(x.rank))
    dims = {call.dim(dim, x.rank) for dim in numbers}
    order = call.common_order([x])
    kept = tuple(dim for dim in order if dim not in dims)
    axes = call.constant("axes", [position for position, dim in enumerate(order) if dim in dims], DType.INT32)
    # Dimensions are dropped in LiteRT and come back as a view: the result keeps the order of its input.
    survivors = [dim for dim in plain(x.rank) if dim not in dims]
    value, made = call.result(
        tuple(survivors.index(dim) for dim in kept), quantization, [x.shape[dim] for dim in survivors]
    )
    call.emit(code, [call.tensor(x, order), axes], [made], keep_dims=False)
    view = value.with_ones(call.shape)
    return view if view is not None else value
