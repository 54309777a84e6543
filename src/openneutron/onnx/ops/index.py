"""Reading and writing elements by index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from openneutron.errors import FormatError
from openneutron.onnx.ops import converts
from openneutron.onnx.ops._types import to

if TYPE_CHECKING:
    from openneutron.onnx.call import Call


def _check_bounds(call: Call, index: int, size: int) -> None:
    """Refuse known indices outside a dimension, which torch reports late or never."""
    if call.value(index).data is not None:
        known = call.constant_input(index)
        if known.size and (known.min() < -size or known.max() >= size):
            one = known.max() if known.max() >= size else known.min()
            raise FormatError(f"it reads element {one} of {size}", hint="export the model again")


def _from_front(call: Call, index: int, size: int) -> torch.Tensor:
    """Return indices counted from the front."""
    if call.value(index).data is not None:
        known = call.constant_input(index)
        if (known < 0).any():
            return call.constant(np.where(known < 0, known + size, known).astype(np.int64))
        return to(call.tensor(index), torch.int64)
    indices = to(call.tensor(index), torch.int64)
    return torch.where(indices < 0, indices + size, indices)


@converts("Gather")
def gather(call: Call) -> torch.Tensor:
    """Return slices along an axis: one, a range, or any selection."""
    x, axis = call.tensor(0), int(call.attribute("axis", 0)) % max(call.tensor(0).dim(), 1)
    size = x.shape[axis]
    _check_bounds(call, 1, size)
    known = call.constant_input(1) if call.value(1).data is not None else None
    if known is not None and known.ndim == 0:
        return torch.select(x, axis, int(known) % size)
    if known is not None and known.ndim == 1 and known.size:
        places = [int(one) % size for one in known]
        if places == list(range(places[0], places[0] + len(places))):
            return torch.ops.aten.slice.Tensor(x, axis, places[0], places[-1] + 1)
    indices = _from_front(call, 1, size)
    if axis == 0 and x.dim() == 2 and x.is_floating_point() and call.value(0).data is not None:
        return torch.nn.functional.embedding(indices, x)
    picked = torch.index_select(x, axis, indices.reshape(-1))
    return picked.reshape(*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]) if indices.dim() != 1 else picked


@converts("GatherElements")
def gather_elements(call: Call) -> torch.Tensor:
    """Return one element per index."""
    x, axis = call.tensor(0), int(call.attribute("axis", 0))
    _check_bounds(call, 1, x.shape[axis])
    return torch.gather(x, axis, _from_front(call, 1, x.shape[axis]))


def _flat_index(indices: torch.Tensor, sizes: Any) -> torch.Tensor:
    """Combine indices into several dimensions to one flat index."""
    flat = torch.zeros_like(indices[..., 0])
    for at, size in enumerate(sizes):
        one = indices[..., at]
        flat = flat * size + torch.where(one < 0, one + size, one)
    return flat


@converts("GatherND")
def gather_nd(call: Call) -> torch.Tensor:
    """Return slices selected by index tuples."""
    x, indices, batch = call.tensor(0), to(call.tensor(1), torch.int64), int(call.attribute("batch_dims", 0))
    depth = indices.shape[-1]
    front, middle, rest = x.shape[:batch], x.shape[batch : batch + depth], x.shape[batch + depth :]
    flat = _flat_index(indices, middle)
    count = int(np.prod(front, dtype=np.int64))
    total = int(np.prod(middle, dtype=np.int64))
    rows = x.reshape(count * total, *rest)
    flat = flat.reshape(count, -1) + (torch.arange(count) * total).reshape(count, 1)
    return torch.index_select(rows, 0, flat.reshape(-1)).reshape(*indices.shape[:-1], *rest)


_REDUCE = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@converts("ScatterElements", "Scatter")
def scatter_elements(call: Call) -> torch.Tensor:
    """Write elements at indices, or combine them with the existing ones."""
    x, axis, updates = call.tensor(0), int(call.attribute("axis", 0)), call.tensor(2)
    _check_bounds(call, 1, x.shape[axis])
    indices = _from_front(call, 1, x.shape[axis])
    how = call.text("reduction", "none", ("none", *_REDUCE))
    if how == "none":
        return torch.scatter(x, axis, indices, updates)
    if how == "add":
        return torch.scatter_add(x, axis, indices, updates)
    return torch.scatter_reduce(x, axis, indices, updates, _REDUCE[how])


@converts("ScatterND")
def scatter_nd(call: Call) -> torch.Tensor:
    """Write slices at index tuples, or combine them with the existing ones."""
    x, indices, updates = call.tensor(0), to(call.tensor(1), torch.int64), call.tensor(2)
    depth = indices.shape[-1]
    total = int(np.prod(x.shape[:depth], dtype=np.int64))
    rest = x.shape[depth:]
    flat = _flat_index(indices, x.shape[:depth]).reshape(-1)
    rows, new = x.reshape(total, *rest), updates.reshape(-1, *rest)
    how = call.text("reduction", "none", ("none", *_REDUCE))
    if how == "none":
        return torch.index_put(rows, [flat], new).reshape(x.shape)
    if how == "add":
        return torch.index_put(rows, [flat], new, accumulate=True).reshape(x.shape)
    return torch.index_reduce(rows, 0, flat, new, _REDUCE[how]).reshape(x.shape)


@converts("TensorScatter")
def tensor_scatter(call: Call) -> torch.Tensor:
    """Write new entries into a cache, at a position per batch."""
    cache, update = call.tensor(0), call.tensor(1)
    axis = int(call.attribute("axis", -2)) % cache.dim()
    circular = call.text("mode", "linear", ("linear", "circular")) == "circular"
    starts = call.numbers(2) if call.has(2) else [0] * cache.shape[0]
    length, size = update.shape[axis], cache.shape[axis]
    places = np.array([[start + at for at in range(length)] for start in starts], np.int64)
    places = places % size if circular else places
    shape = [1] * cache.dim()
    shape[0], shape[axis] = cache.shape[0], length
    return torch.scatter(cache, axis, call.constant(places.reshape(shape)).expand(update.shape), update)


@converts("TopK")
def top_k(call: Call) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the largest or smallest elements and their positions; the first of equal ones."""
    x, axis = call.tensor(0), int(call.attribute("axis", -1))
    count = int(call.attribute("k", 0)) if call.version < 10 else call.numbers(1)[0]
    largest = bool(call.attribute("largest", 1))
    if call.value(0).data is not None:  # folded constants: keep ONNX's order of equal numbers
        data = x if x.dtype not in (torch.uint16, torch.uint32, torch.uint64) else x.to(torch.int64)
        values, places = torch.sort(data, dim=axis, descending=largest, stable=True)
        return to(values.narrow(axis, 0, count), x.dtype), places.narrow(axis, 0, count)
    values, places = torch.topk(x, count, axis, largest, True)
    return values, places


def _arg(call: Call, function: Any) -> torch.Tensor:
    """Return positions; the NPU's form drops the dimension, which is added again if asked for."""
    x, axis = call.tensor(0), int(call.attribute("axis", 0))
    if call.attribute("select_last_index", 0):
        found = x.shape[axis] - 1 - function(torch.flip(x, [axis]), axis)
    else:
        found = function(x, axis)
    return torch.unsqueeze(found, axis % x.dim()) if call.attribute("keepdims", 1) else found


@converts("ArgMax")
def arg_max(call: Call) -> torch.Tensor:
    """Return the position of the maximum."""
    return _arg(call, torch.argmax)


@converts("ArgMin")
def arg_min(call: Call) -> torch.Tensor:
    """Return the position of the minimum."""
    return _arg(call, torch.argmin)


@converts("NonZero")
def non_zero(call: Call) -> torch.Tensor:
    """Return the positions of non-zero elements. Their number depends on the data."""
    return torch.from_numpy(np.stack(np.nonzero(np.atleast_1d(call.constant_input(0)))).astype(np.int64))


@converts("Compress")
def compress(call: Call) -> torch.Tensor:
    """Return the slices for which a condition, which must be known, holds."""
    x, condition = call.tensor(0), np.flatnonzero(call.constant_input(1)).astype(np.int64)
    axis = call.attribute("axis")
    x, axis = (x.reshape(-1), 0) if axis is None else (x, int(axis))
    return torch.index_select(x, axis, call.constant(condition))


@converts("Unique")
def unique(call: Call) -> tuple[torch.Tensor, ...]:
    """Return the distinct values. Their number depends on the data."""
    x, axis = call.constant_input(0), call.attribute("axis")
    values, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not call.attribute("sorted", 1):
        order = np.argsort(first)
        rank = np.argsort(order)
        values = np.take(values, order, axis=0 if axis is None else axis)
        first, counts, inverse = first[order], counts[order], rank[inverse]
    return tuple(torch.from_numpy(np.ascontiguousarray(one)) for one in (values, first, inverse, counts))
