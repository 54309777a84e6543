"""Cutting pieces out of a value, in whatever order it exists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from openneutron.executorch.lower.values import Value
from openneutron.litert.graph import DType

if TYPE_CHECKING:
    from openneutron.executorch.lower.call import Call


def cut(call: Call, x: Value, begin: Sequence[int], size: Sequence[int], step: Sequence[int]) -> Value:
    """Emit SLICE, or STRIDED_SLICE where a step is not 1; arguments are given per logical dimension."""
    if x.is_constant:
        picked = tuple(slice(b, b + (n - 1) * s + 1, s) for b, n, s in zip(begin, size, step, strict=True))
        q = x.quantization
        if q is not None and q.per_channel:
            raise call.reject("per_channel_slice", "it cuts a constant that is quantized per channel")
        return call.layouts.constant(f"{x.storage.name}_cut", x.array()[picked], x.storage.dtype, q)
    if tuple(size) == x.shape:
        return x
    order = call.common_order([x])
    source = call.tensor(x, order)
    value, made = call.result(order, x.quantization, size, f"{call.node.name}_cut")
    first = call.constant("begin", [begin[dim] for dim in order], DType.INT32)
    if all(one == 1 for one in step):
        sizes = call.constant("size", [size[dim] for dim in order], DType.INT32)
        call.emit("SLICE", [source, first, sizes], [made])
    else:
        last = [begin[dim] + (size[dim] - 1) * step[dim] + 1 for dim in order]
        ends, steps = (
            call.constant("end", last, DType.INT32),
            call.constant("step", [step[d] for d in order], DType.INT32),
        )
        call.emit("STRIDED_SLICE", [source, first, ends, steps], [made], begin_mask=0, end_mask=0)
    return value
