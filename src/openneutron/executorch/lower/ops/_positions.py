"""Positions known only at run time as LiteRT tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.values import plain
from openneutron.litert.graph import DType

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call


def index_tensor(call: Call, node: Node) -> int:
    """Return the tensor of integers that the program computes or gets."""
    value = call.of(node)
    return call.tensor(value, plain(value.rank))


def position_tensor(call: Call, node: Node, at: int = 0) -> int:
    """Return one position, of several the one at `at`, as a vector of one element."""
    index = index_tensor(call, node)
    tensor = call.lowering.builder.graph.tensors[index]
    if tensor.shape == (1,):
        return index
    return call.lowering.once(("position", index, at), lambda: _as_vector(call, index, at))


def _as_vector(call: Call, index: int, at: int) -> int:
    tensor = call.lowering.builder.graph.tensors[index]
    made = call.lowering.builder.tensor(call.layouts.unique(f"{tensor.name}_position"), (1,), tensor.dtype)
    if tensor.elements == 1:
        call.emit("RESHAPE", [index, call.layouts.shape_tensor((1,))], [made], new_shape=[1])
    else:
        call.emit(
            "SLICE",
            [index, *(call.constant(name, [one], DType.INT32) for name, one in (("begin", at), ("size", 1)))],
            [made],
        )
    return made


def starts_tensor(call: Call, position: int, rank: int, axis: int) -> int:
    """Return the starts of a box along `rank` dimensions: the position along `axis`, 0 along the others."""
    return call.lowering.once(("starts", position, rank, axis), lambda: _starts(call, position, rank, axis))


def _starts(call: Call, position: int, rank: int, axis: int) -> int:
    tensor = call.lowering.builder.graph.tensors[position]
    if rank == 1:
        return position
    zeros = [call.constant(f"zeros{count}", [0] * count, tensor.dtype) for count in (axis, rank - 1 - axis) if count]
    made = call.lowering.builder.tensor(call.layouts.unique(f"{tensor.name}_starts"), (rank,), tensor.dtype)
    parts = [*zeros[: 1 if axis else 0], position, *zeros[1 if axis else 0 :]]
    call.emit("CONCATENATION", parts, [made], axis=0)
    return made
