"""Constants that are stored in fewer bytes than they have elements: packed 4- and 2-bit values, sparse tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from openneutron.litert.graph import Array, DType

_SIGNED = frozenset({DType.INT4, DType.INT2})
_SPARSE = 1  # the schema's DimensionType.SPARSE_CSR; 0 is DENSE


def packed_size(elements: int, dtype: DType) -> int:
    """Return the size of `elements` packed values; the last byte is filled up."""
    return (elements * dtype.bits + 7) // 8


def unpack(raw: Array, elements: int, dtype: DType) -> Array:
    """Unpack values, lowest bits first, to one value per byte (sign-extended for the signed types)."""
    bits = dtype.bits
    per_byte = 8 // bits
    wide = np.empty((len(raw), per_byte), np.uint8)
    for lane in range(per_byte):
        wide[:, lane] = (raw >> (bits * lane)) & ((1 << bits) - 1)
    flat = wide.reshape(-1)[:elements]
    if dtype in _SIGNED:
        half = 1 << (bits - 1)
        return ((flat ^ half).astype(np.int8) - np.int8(half)).astype(np.int8)
    return flat


def pack(values: Array, dtype: DType) -> Array:
    """Undo `unpack`, with zero in the unused bits."""
    bits = dtype.bits
    per_byte = 8 // bits
    flat = np.zeros(packed_size(values.size, dtype) * per_byte, np.uint8)
    flat[: values.size] = values.reshape(-1).astype(np.int16) & ((1 << bits) - 1)
    lanes = flat.reshape(-1, per_byte)
    packed = np.zeros(len(lanes), np.uint8)
    for lane in range(per_byte):
        packed |= lanes[:, lane] << np.uint8(bits * lane)
    return packed


def densify(values: Array, shape: tuple[int, ...], sparsity: Any) -> Array:
    """Return the dense form of LiteRT's sparse encoding (a tree of dense and CSR levels over blocked dimensions)."""
    rank = len(shape)
    blocks = [] if sparsity.blockMap is None else [int(v) for v in sparsity.blockMap]
    order = [] if sparsity.traversalOrder is None else [int(v) for v in sparsity.traversalOrder]
    levels = sparsity.dimMetadata or []
    if sorted(order) != list(range(rank + len(blocks))) or len(levels) != len(order):
        raise ValueError(f"traversal order {order} with {len(levels)} levels does not fit rank {rank}")
    if len(set(blocks)) != len(blocks) or any(not 0 <= dim < rank for dim in blocks):
        raise ValueError(f"block map {blocks} does not fit rank {rank}")

    sizes = _level_sizes(shape, blocks, order, levels)
    # Every level ends in stored values or in stored segments, so no honest one has more entries than these.
    limit = max([len(values)] + [len(_index_array(level.arraySegments)) for level in levels])
    coordinates = [np.zeros(1, np.int64) for _ in order]
    entries = 1
    for dim, level in zip(order, levels, strict=True):
        parents, steps = _descend(level, entries, sizes[dim], limit)
        coordinates = [known[parents] for known in coordinates]
        coordinates[dim] = steps
        entries = len(steps)
    if entries != len(values):
        raise ValueError(f"{entries} stored positions but {len(values)} values")

    for number, dim in enumerate(blocks):
        coordinates[dim] = coordinates[dim] * sizes[rank + number] + coordinates[rank + number]
    dense: Array = np.zeros(shape, values.dtype)
    dense[tuple(coordinates[:rank])] = values
    return dense


def _level_sizes(shape: tuple[int, ...], blocks: list[int], order: list[int], levels: list[Any]) -> list[int]:
    """Return the size of each expanded dimension: outer dimensions count blocks, inner ones elements of a block."""
    rank = len(shape)
    sizes = list(shape) + [0] * len(blocks)
    for dim, level in zip(order, levels, strict=True):
        if dim >= rank:
            block = int(level.denseSize)
            outer = blocks[dim - rank]
            if level.format == _SPARSE or block <= 0 or shape[outer] % block:
                raise ValueError(f"block size {block} does not divide dimension {outer} of size {shape[outer]}")
            sizes[dim] = block
            sizes[outer] = shape[outer] // block
    return sizes


def _descend(level: Any, entries: int, size: int, limit: int) -> tuple[Array, Array]:
    """(parent entry, coordinate) of every child of one level."""
    if level.format != _SPARSE:
        if level.denseSize != size:
            raise ValueError(f"a dense level of {level.denseSize} where the dimension has {size}")
        if entries * size > limit:
            raise ValueError(f"a dense level has {entries * size} entries, more than the tensor stores")
        return np.repeat(np.arange(entries), size), np.tile(np.arange(size), entries)
    segments, indices = _index_array(level.arraySegments), _index_array(level.arrayIndices)
    counts = np.diff(segments)
    if len(segments) != entries + 1 or segments[0] != 0 or (counts < 0).any() or segments[-1] != len(indices):
        raise ValueError(f"the segments of a sparse level do not cover its {len(indices)} indices")
    if len(indices) > limit or (len(indices) and (indices.min() < 0 or indices.max() >= size)):
        raise ValueError(f"an index of a sparse level lies outside its dimension of {size}")
    return np.repeat(np.arange(entries), counts.astype(np.intp)), indices


def _index_array(index_vector: Any) -> Array:
    """The numbers of one SparseIndexVector; none when it is absent."""
    values = None if index_vector is None else index_vector.values
    return np.asarray([] if values is None else values, np.int64)
