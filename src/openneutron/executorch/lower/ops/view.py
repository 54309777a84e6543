"""Operators that give a tensor another shape: view, reshape, flatten, squeeze, unsqueeze."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from openneutron.executorch.lower.values import Order, Value
from openneutron.executorch.operators import annotates, lowers

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates(
    "aten.view.default", "aten.reshape.default", "aten.flatten.using_ints", "aten.unflatten.int",
    "aten.squeeze.default", "aten.squeeze.dim", "aten.squeeze.dims", "aten.unsqueeze.default", "aten._unsafe_view.default",
    wide=True,
)  # fmt: skip
def annotate(node: Node, a: Annotator) -> None:
    """Share the quantization parameters of input and output: stored values do not change."""
    a.share_parameters(node)


@lowers("aten.view_copy.default", "aten.squeeze_copy.dims", "aten.squeeze_copy.dim", "aten.unsqueeze_copy.default",
        "aten.view.default", shape_only=True, cpu="free")  # fmt: skip
def lower(call: Call) -> Value:
    """Lower to RESHAPE in an order that keeps joined dimensions adjacent, or to nothing if only sizes of 1 come or go."""
    x = call.value("self")
    same = x.with_ones(call.shape)
    if same is not None:
        return same
    if x.is_constant:
        return reshaped_constant(call, x)
    if 0 in x.shape:
        raise call.reject("empty_tensor", f"its input has the shape {list(x.shape)} and holds nothing")
    groups = pair_dimensions(x.shape, call.shape)
    order = call.common_order([x], fit=lambda given: regroup(given, groups, x.shape))
    in_memory = sorted(groups, key=lambda group: order.index(group[0][0]))
    value, made = call.result(tuple(dim for _, made_of in in_memory for dim in made_of), x.quantization)
    source = call.tensor(x, order)
    shape = list(call.lowering.builder.graph.tensors[made].shape)
    call.emit("RESHAPE", [source, call.layouts.shape_tensor(shape)], [made], new_shape=shape)
    return value


Group = tuple[tuple[int, ...], tuple[int, ...]]


def pair_dimensions(before: Sequence[int], after: Sequence[int]) -> list[Group]:
    """Return the smallest runs of dimensions that hold the same elements before and after."""
    groups: list[Group] = []
    i = j = 0
    while i < len(before) and j < len(after):
        start, first, left, right = i, j, before[i], after[j]
        i, j = i + 1, j + 1
        while left != right:
            if left < right:
                left, i = left * before[i], i + 1
            else:
                right, j = right * after[j], j + 1
        groups.append((tuple(range(start, i)), tuple(range(first, j))))
    # Ones at the end belong to the last run.
    last, made_of = groups[-1]
    groups[-1] = ((*last, *range(i, len(before))), (*made_of, *range(j, len(after))))
    return groups


def regroup(order: Order, groups: Sequence[Group], shape: Sequence[int]) -> Order:
    """Return `order` with the dimensions of each run adjacent, at the place of its last dimension that is not 1."""

    def place(group: Group) -> int:
        large = [order.index(dim) for dim in group[0] if shape[dim] != 1]
        return max(large) if large else order.index(group[0][0])

    return tuple(dim for group in sorted(groups, key=place) for dim in group[0])


def reshaped_constant(call: Call, x: Value) -> Value:
    """Return a constant in another shape; reject one that is quantized per channel."""
    if x.quantization is not None and x.quantization.per_channel:
        raise call.reject("per_channel_view", "it reshapes a constant that is quantized per channel")
    return call.layouts.constant(x.storage.name, x.array().reshape(call.shape), x.storage.dtype, x.quantization)
