"""Slices with any step, and single indices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.ops._slice import cut
from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.slice.Tensor", "aten.select.int", "aten.narrow.default", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Share the quantization parameters of input and output: stored values are copied."""
    a.share_parameters(node)


@lowers("aten.slice_copy.Tensor", "aten.slice.Tensor", shape_only=True, cpu="move")
def lower(call: Call) -> Value:
    """Lower to SLICE or STRIDED_SLICE."""
    x = call.value("self")
    dim = call.dim(call["dim"], x.rank)
    length, step = x.shape[dim], int(call["step"])
    start = _clip(0 if call["start"] is None else int(call["start"]), length)
    begin, steps = [0] * x.rank, [1] * x.rank
    begin[dim], steps[dim] = min(start, length - 1), step
    return cut(call, x, begin, call.shape, steps)


@lowers("aten.select_copy.int", "aten.select.int", shape_only=True, cpu="move")
def lower_select(call: Call) -> Value:
    """Lower to a SLICE of one index, and drop its dimension."""
    x = call.value("self")
    dim = call.dim(call["dim"], x.rank)
    begin, size = [0] * x.rank, list(x.shape)
    begin[dim], size[dim] = int(call["index"]) % x.shape[dim], 1
    piece = cut(call, x, begin, size, [1] * x.rank)
    return Value(piece.storage, tuple(axis for position, axis in enumerate(piece.axes) if position != dim))


def _clip(start: int, length: int) -> int:
    return min(max(start + length if start < 0 else start, 0), length)
