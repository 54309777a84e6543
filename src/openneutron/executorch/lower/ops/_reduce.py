"""Reductions over any dimensions, in whatever order the input exists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.layout import Value, plain
from openneutron.litert.graph import DType, Quantization

if TYPE_CHECKING:
    from openneutron.executorch.lower.call import Call


def lower_reduction(call: Call, code: str, x: Value, quantization: Quantization | None) -> Value:
    """Emit `code`; arguments are PyTorch's `dim` (none or empty: all) and `keepdim`."""
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
