"""Demand-driven layouts: the same value in several orders of dimensions, each made only when an operator asks for it.

A `Storage` is data; a `Value` is a way to look at it (permuted, with dimensions of size 1 added or dropped), so permute,
squeeze and clone emit nothing. An order lists a value's dimensions from the slowest to the fastest in memory. Asking for
an order that does not exist yet emits one TRANSPOSE; when the orders differ only in dimensions of size 1 the bytes are the
same and a RESHAPE suffices, which is why one channel or one pixel needs no special case.

Example:
    >>> x = layouts.program_input("x", (1, 3, 32, 32), DType.INT8, quantization, channels_last=False)
    >>> tensor = layouts.tensor(x, channels_last(4))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.litert.build import GraphBuilder
from openneutron.litert.graph import DType, Quantization

Order = tuple[int, ...]
Axes = tuple[int | None, ...]
CHANNELS_LAST, FORMATLESS = 1, 0  # tensor formats of the payload
# What the delegate transposes: signals [N, C, W] and images [N, C, H, W]; all else enters and leaves as the program has it.
BORDER_RANKS = (3, 4)


def plain(rank: int) -> Order:
    """Return the dimensions in PyTorch's order."""
    return tuple(range(rank))


def channels_last(rank: int) -> Order:
    """Return the order batch, space, channels: NHWC for rank 4, NWC for rank 3; PyTorch's order below."""
    return (0, *range(2, rank), 1) if rank > 2 else plain(rank)


@dataclass(eq=False)
class Storage:
    """Data with its logical shape. `tensors` are the LiteRT tensors that hold it, each with its dimensions in memory order.

    `data` is a constant's value. `native` is the memory order of a program input, realised when it is first used.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    quantization: Quantization | None
    data: npt.NDArray[Any] | None = None
    native: Order | None = None
    tensors: dict[Order, list[tuple[Axes, int]]] = field(default_factory=dict)

    def key(self, axes: Axes) -> Order:
        """The dimensions larger than 1 in memory order, which determine the bytes."""
        return tuple(axis for axis in axes if axis is not None and self.shape[axis] != 1)

    def physical(self, axes: Axes) -> tuple[int, ...]:
        """Sizes in memory order."""
        return tuple(1 if axis is None else self.shape[axis] for axis in axes)


@dataclass(frozen=True)
class Value:
    """A view of a storage: dimension i is the storage's dimension `axes[i]`, or a 1 that the storage does not have."""

    storage: Storage
    axes: Axes

    @property
    def shape(self) -> tuple[int, ...]:
        """Logical shape."""
        return self.storage.physical(self.axes)

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.axes)

    @property
    def quantization(self) -> Quantization | None:
        """Scales and zero points; their axis is the storage's, see `channel_axis`."""
        return self.storage.quantization

    @property
    def is_constant(self) -> bool:
        """Whether the data is known."""
        return self.storage.data is not None

    @property
    def channel_axis(self) -> int:
        """The dimension of this view along which a per-channel quantization runs, -1 when there is none."""
        q = self.quantization
        return self.axes.index(q.axis) if q is not None and q.per_channel and q.axis in self.axes else -1

    def array(self) -> npt.NDArray[Any]:
        """Return a constant's data in this view's shape."""
        data = self.storage.data
        if data is None:
            raise ValueError(f"{self.storage.name} is not constant")
        kept = [axis for axis in self.axes if axis is not None]
        dropped = [axis for axis in range(data.ndim) if axis not in kept]
        return data.transpose(kept + dropped).reshape(self.shape)

    def permute(self, order: Sequence[int]) -> Value:
        """Return the view whose dimension i is this one's dimension `order[i]`."""
        return Value(self.storage, tuple(self.axes[i] for i in order))

    def with_ones(self, shape: Sequence[int]) -> Value | None:
        """Return this value in another shape if only dimensions of size 1 come or go, else None."""
        large = [axis for axis, size in zip(self.axes, self.shape, strict=True) if size != 1]
        if [size for size in shape if size != 1] != [size for size in self.shape if size != 1]:
            return None
        remaining = iter(large)
        return Value(self.storage, tuple(None if size == 1 else next(remaining) for size in shape))


Emit = Callable[..., None]


class Layouts:
    """Gives the LiteRT tensor of a value in the order that an operator needs.

    With `convert_inside` the borders keep the program's layout and transposes are emitted; without it the borders of
    signals and images take the layout the operators want, and the delegate transposes.
    """

    def __init__(self, builder: GraphBuilder, emit: Emit, *, convert_inside: bool) -> None:
        self.builder = builder
        self.emit = emit
        self.convert_inside = convert_inside
        self.formats: dict[int, int] = {}
        self._names: dict[str, int] = {}

    def unique(self, name: str) -> str:
        """Return `name`, with a number appended if it is already used."""
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return name if not count else self.unique(f"{name}_{count}")

    def constant(
        self, name: str, data: npt.NDArray[Any], dtype: DType, quantization: Quantization | None = None
    ) -> Value:
        """Return a value with known data."""
        return Value(Storage(name, data.shape, dtype, quantization, data=data), plain(data.ndim))

    def program_input(
        self, name: str, shape: tuple[int, ...], dtype: DType, quantization: Quantization | None, *, channels_last: bool
    ) -> Value:
        """Return a value for an input of the partition; `channels_last` says how the program stores it."""
        native = _last(len(shape)) if channels_last else plain(len(shape))
        return Value(Storage(name, shape, dtype, quantization, native=native), plain(len(shape)))

    def produce(
        self, name: str, shape: tuple[int, ...], order: Order, dtype: DType, quantization: Quantization | None
    ) -> tuple[Value, int]:
        """Return a new value of logical `shape`, and the tensor that will hold it in `order`."""
        storage = Storage(name, shape, dtype, quantization)
        return Value(storage, plain(len(shape))), self._realise(storage, order)

    def available(self, value: Value, order: Order) -> bool:
        """Return whether the order costs no transpose."""
        storage, key = value.storage, value.storage.key(tuple(value.axes[i] for i in order))
        if value.is_constant or key in storage.tensors:
            return True
        if storage.native is None or storage.tensors:
            return False
        return key == storage.key(storage.native) or (not self.convert_inside and key == self._free_key(storage))

    def orders(self, value: Value) -> list[Order]:
        """Return the orders in which the value exists, if they name every one of its dimensions."""
        inverse = {axis: dim for dim, axis in enumerate(value.axes) if axis is not None}
        stored = [axes for found in value.storage.tensors.values() for axes, _ in found]
        named = [tuple(inverse[axis] for axis in axes if axis in inverse) for axes in stored]  # type: ignore[index]
        return [order for order in named if len(order) == value.rank]

    def is_open(self, value: Value) -> bool:
        """Return whether the value is a program input whose layout is not decided yet."""
        return value.storage.native is not None and not value.storage.tensors

    def tensor(self, value: Value, order: Order) -> int:
        """Return the LiteRT tensor of `value` with its dimensions in `order`; create it if it does not exist."""
        storage = value.storage
        axes = tuple(value.axes[i] for i in order)
        if storage.data is not None:
            return self._constant_tensor(value, order, axes)
        if self.is_open(value):
            free = self._free_key(storage)
            wanted = storage.key(axes)
            as_last = not self.convert_inside and wanted == free and wanted != storage.key(storage.native or ())
            self._realise_input(storage, _last(len(storage.shape)) if as_last else storage.native or ())
        found = storage.tensors.get(storage.key(axes))
        if found is None:
            return self._transpose(storage, axes)
        for existing, tensor in found:
            if storage.physical(existing) == storage.physical(axes):
                return tensor
        return self._reshape(storage, axes, found[0][1])

    def output(self, value: Value, *, channels_last: bool) -> tuple[int, int]:
        """Return the output tensor of `value`, and its format in the payload."""
        rank = value.rank
        native = _last(rank) if channels_last else plain(rank)
        order = native
        delegate_can = rank in BORDER_RANKS and not channels_last and not self.convert_inside
        if delegate_can and not self.available(value, native) and self.available(value, _last(rank)):
            order = _last(rank)
        same_bytes = value.storage.key(tuple(value.axes[i] for i in order)) == value.storage.key(value.axes)
        return self.tensor(value, order), FORMATLESS if same_bytes else CHANNELS_LAST

    def _free_key(self, storage: Storage) -> Order:
        rank = len(storage.shape)
        return storage.key(_last(rank)) if rank in BORDER_RANKS else storage.key(storage.native or ())

    def _realise_input(self, storage: Storage, order: Order) -> None:
        tensor = self._realise(storage, order)
        is_last = storage.key(order) != storage.key(plain(len(storage.shape)))
        self.formats[tensor] = CHANNELS_LAST if is_last else FORMATLESS

    def _realise(self, storage: Storage, axes: Axes, name: str = "") -> int:
        q = storage.quantization
        made = self.builder.tensor(
            self.unique(name or storage.name), storage.physical(axes), storage.dtype,
            scale=q.scale if q else None, zero_point=q.zero_point if q else None,
        )  # fmt: skip
        storage.tensors.setdefault(storage.key(axes), []).append((axes, made))
        return made

    def _constant_tensor(self, value: Value, order: Order, axes: Axes) -> int:
        storage = value.storage
        for existing, tensor in storage.tensors.get(storage.key(axes), []):
            if existing == axes:
                return tensor
        q = storage.quantization
        made = self.builder.tensor(
            self.unique(storage.name), storage.physical(axes), storage.dtype,
            scale=q.scale if q else None, zero_point=q.zero_point if q else None,
            axis=axes.index(q.axis) if q is not None and q.per_channel else 0,
            data=np.ascontiguousarray(value.array().transpose(order)),
        )  # fmt: skip
        storage.tensors.setdefault(storage.key(axes), []).append((axes, made))
        return made

    def _reshape(self, storage: Storage, axes: Axes, source: int) -> int:
        made = self._realise(storage, axes, f"{storage.name}_view")
        shape = storage.physical(axes)
        self.emit("RESHAPE", [source, self.shape_tensor(shape)], [made], new_shape=list(shape))
        return made

    def _transpose(self, storage: Storage, axes: Axes) -> int:
        candidates = [one for found in storage.tensors.values() for one in found]
        for existing, tensor in candidates:
            if len(existing) == len(axes):
                source_axes, source = existing, tensor
                break
        else:
            large = storage.key(candidates[0][0])
            source_axes, source = large, self._reshape(storage, large, candidates[0][1])
        target = axes if len(axes) == len(source_axes) else storage.key(axes)
        made = self._realise(storage, target, f"{storage.name}_transposed")
        permutation = _permutation(storage, source_axes, target)
        indices = self.builder.tensor(
            self.unique("permutation"), (len(permutation),), DType.INT32, data=np.array(permutation, np.int32)
        )
        self.emit("TRANSPOSE", [source, indices], [made])
        return made if target == axes else self._reshape(storage, axes, made)

    def shape_tensor(self, shape: Sequence[int], name: str = "shape") -> int:
        """Return a constant INT32 vector."""
        return self.builder.tensor(self.unique(name), (len(shape),), DType.INT32, data=np.array(shape, np.int32))


def _last(rank: int) -> Order:
    return channels_last(rank)


def _permutation(storage: Storage, source: Axes, target: Axes) -> list[int]:
    """Return the position in `source` of each dimension of `target`; dimensions of size 1 are interchangeable."""

    def is_large(axis: int | None) -> bool:
        return axis is not None and storage.shape[axis] != 1

    ones = iter(position for position, axis in enumerate(source) if not is_large(axis))
    return [source.index(axis) if is_large(axis) else next(ones) for axis in target]
