"""Reading tensors: shape, type, quantization, and the constant's value as a view of the file."""

from __future__ import annotations

from typing import Any

from openneutron.litert import sparse as expand
from openneutron.litert.graph import DTYPES, Array, DType, Quantization, Sparsity, Tensor, Variant
from openneutron.litert.light_options import LightOptions
from openneutron.litert.operator_options import schema
from openneutron.litert.walker import Table, Walker

# LiteRT keeps sizes in 32-bit integers, so a larger tensor cannot be valid.
MAX_ELEMENTS = 1 << 31
# numpy 1.x holds at most 32 dimensions; no LiteRT kernel takes more than 8.
MAX_RANK = 32
# Sparse and packed constants grow when read. No Neutron target has a tenth of this much flash, and a
# hostile file of a few bytes may not ask for gigabytes.
MAX_EXPANDED_BYTES = 128 << 20
# Offsets 0 and 1 mean "not stored behind the flatbuffer".
_FIRST_EXTERNAL_OFFSET = 2


class Buffers:
    """The file's buffers, read on demand and once each."""

    def __init__(self, walker: Walker, positions: list[int]) -> None:
        self.walker = walker
        self._positions = positions
        self._views: dict[int, Array | None] = {}
        self._unpacked: dict[tuple[int, DType, int], Array] = {}
        self._expanded_bytes = 0

    def view(self, index: int, owner: Table) -> Array | None:
        """The bytes of buffer `index`, or None when it has none (activations)."""
        if index == 0:
            return None
        if index >= len(self._positions):
            raise owner.error(f"buffer {index} does not exist, the file has {len(self._positions)}")
        if index not in self._views:
            table = self.walker.table(self._positions[index], f"buffer {index}")
            stored = table.vector(0, "u1")
            offset, size = table.u64(1), table.u64(2)
            if stored is None and offset >= _FIRST_EXTERNAL_OFFSET:
                stored = self.walker.span(offset, size, table.where)
            self._views[index] = stored
        return self._views[index]

    def charge(self, size: int, owner: Table) -> None:
        """Count `size` bytes of expanded constants against the limit."""
        self._expanded_bytes += size
        if self._expanded_bytes > MAX_EXPANDED_BYTES:
            raise owner.error(
                f"sparse and packed constants take more than {MAX_EXPANDED_BYTES >> 20} MiB when expanded",
                hint="store them dense",
            )

    def unpack(self, index: int, raw: Array, tensor: Tensor, owner: Table) -> Array:
        """The values of a packed buffer, unpacked once for all tensors that share it."""
        key = (index, tensor.dtype, tensor.elements)
        if key not in self._unpacked:
            self.charge(tensor.nbytes, owner)
            values = expand.unpack(raw, tensor.elements, tensor.dtype)
            values.flags.writeable = False
            self._unpacked[key] = values
        return self._unpacked[key].reshape(tensor.shape)


def read_tensor(table: Table, buffers: Buffers) -> Tensor:
    """One tensor of a subgraph."""
    shape = _shape(table, 0)
    dtype = _dtype(table, 1)
    if table.u32(10):
        raise table.error("the tensor's value is in another file", hint="store all weights inside the .tflite file")
    quantization, details = _quantization(table, shape)
    tensor = Tensor(
        name=table.text(3),
        shape=shape,
        dtype=dtype,
        quantization=quantization,
        is_variable=table.u8(5) != 0,
        shape_signature=_signature(table, shape),
        has_rank=table.u8(8) != 0,
        quantization_details=details,
        variants=_variants(table),
    )
    buffer = table.u32(2)
    raw = buffers.view(buffer, table)
    if raw is not None:
        _read_value(table, tensor, raw, buffers, buffer)
    return tensor


def _shape(table: Table, slot: int) -> tuple[int, ...]:
    stored = table.vector(slot, "<i4")
    if stored is None:
        return ()
    if len(stored) > MAX_RANK:
        raise table.error(f"the tensor has {len(stored)} dimensions, more than {MAX_RANK}")
    shape = tuple(table.values(slot, "<i4"))
    count = 1
    for size in shape:
        if size < 0:
            raise table.error(f"shape {list(shape)} has a negative size")
        count *= max(size, 1)
    if count > MAX_ELEMENTS:
        raise table.error(f"shape {list(shape)} has more than 2^31 elements")
    return shape


def _signature(table: Table, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    stored = table.vector(7, "<i4")
    # An empty signature is how converters say "as the shape".
    if stored is None or len(stored) == 0:
        return None
    if len(stored) != len(shape):
        raise table.error(f"the shape signature has {len(stored)} dimensions, the shape {len(shape)}")
    signature = tuple(table.values(7, "<i4"))
    if any(size < -1 for size in signature):
        raise table.error(f"shape signature {list(signature)} has a size below -1")
    return signature


def _dtype(table: Table, slot: int) -> DType:
    number = table.i8(slot)
    if not 0 <= number < len(DTYPES):
        raise table.error(f"element type {number} does not exist in LiteRT")
    return DTYPES[number]


def _variants(table: Table) -> tuple[Variant, ...]:
    walker, where = table.walker, table.where
    parts = [walker.table(position, where) for position in table.positions(9)]
    return tuple(Variant(_shape(part, 0), _dtype(part, 1), part.u8(2) != 0) for part in parts)


def _quantization(table: Table, shape: tuple[int, ...]) -> tuple[Quantization | None, Any]:
    part = table.table(4, table.where)
    if part is None:
        return None, None
    details = _details(part)
    stored = part.vector(2, "<f4")
    count = 0 if stored is None else len(stored)
    if count == 0:
        return None, details
    axis = part.i32(6)
    # Some converters mark a 1-D bias with the axis of the weights it belongs to.
    if count == 1 or len(shape) == 1:
        axis = 0
    if count > 1 and (not 0 <= axis < len(shape) or shape[axis] != count):
        raise part.error(f"{count} scales do not fit dimension {axis} of shape {list(shape)}")
    zero_point = tuple(part.values(3, "<i8")) or (0,) * count
    if len(zero_point) != count:
        raise part.error(f"there are {count} scales but {len(zero_point)} zero points")
    minimum, maximum = tuple(part.values(0, "<f4")), tuple(part.values(1, "<f4"))
    return Quantization(tuple(part.values(2, "<f4")), zero_point, axis, minimum, maximum), details


def _details(part: Table) -> Any:
    kind = part.u8(4)
    if kind == 0:
        return None
    names = {1: "CustomQuantizationT", 2: "BlockwiseQuantizationT", 3: "MultiAxisQuantizationT"}
    body = part.table(5, part.where)
    if kind not in names or body is None:
        raise part.error(f"quantization details of type {kind} cannot be read")
    return unpack_object(body, getattr(schema(), names[kind]))


def unpack_object(table: Table, cls: type[Any]) -> Any:
    """Read a checked table as the schema's object; what goes wrong inside becomes a FormatError."""
    if issubclass(cls, LightOptions):
        return cls.read(table)
    try:
        return cls.InitFromBuf(table.walker.data, table.position)
    except Exception as problem:  # the generated code raises whatever struct, numpy or slicing raise
        raise table.error(f"its {cls.__name__.removesuffix('T')} cannot be read ({problem})") from problem


def _read_value(table: Table, tensor: Tensor, raw: Array, buffers: Buffers, buffer: int) -> None:
    sparse = table.table(6, f"sparsity of {table.where}")
    if len(raw) == 0 and (tensor.elements > 0 or tensor.dtype.is_opaque):
        return
    if tensor.is_variable:
        raise table.error("the tensor is a variable and a constant at once")
    if tensor.dtype.is_opaque:
        tensor.data = raw
    elif sparse is not None:
        _read_sparse(sparse, tensor, raw, buffers)
    elif tensor.dtype.bits < 8:
        tensor.data = _read_packed(table, tensor, raw, buffers, buffer)
    else:
        if len(raw) != tensor.nbytes:
            raise table.error(_wrong_size(tensor, len(raw), tensor.nbytes))
        tensor.data = raw.view(tensor.dtype.numpy).reshape(tensor.shape)


def _wrong_size(tensor: Tensor, found: int, needed: int) -> str:
    return f"its buffer has {found} bytes, but {tensor.dtype} of shape {list(tensor.shape)} needs {needed}"


def _read_packed(table: Table, tensor: Tensor, raw: Array, buffers: Buffers, buffer: int) -> Array:
    needed = expand.packed_size(tensor.elements, tensor.dtype)
    if len(raw) != needed:
        raise table.error(_wrong_size(tensor, len(raw), needed))
    return buffers.unpack(buffer, raw, tensor, table)


def _read_sparse(table: Table, tensor: Tensor, raw: Array, buffers: Buffers) -> None:
    if tensor.dtype.bits < 8:
        raise table.error(f"a sparse {tensor.dtype} tensor cannot be read", hint="store it dense")
    if len(raw) % tensor.dtype.itemsize:
        raise table.error(f"its buffer of {len(raw)} bytes is not a whole number of {tensor.dtype} values")
    _check_levels(table)
    parameters = unpack_object(table, schema().SparsityParametersT)
    buffers.charge(tensor.nbytes, table)
    try:
        dense = expand.densify(raw.view(tensor.dtype.numpy), tensor.shape, parameters)
    except ValueError as problem:
        raise table.error(f"the sparse value is inconsistent: {problem}") from problem
    dense.flags.writeable = False
    tensor.data = dense
    tensor.sparsity = Sparsity(raw, parameters)


def _check_levels(table: Table) -> None:
    """Check the nested tables of a sparsity record, because the object API reads them without checks."""
    levels = table.positions(2)
    if len(levels) > 2 * MAX_RANK:
        raise table.error(f"the sparse value has {len(levels)} levels")
    for position in levels:
        level = table.walker.table(position, table.where)
        for slot in (3, 5):
            index_vector = level.table(slot, table.where)
            if index_vector is not None:
                kind = level.u8(slot - 1)
                if kind not in (1, 2, 3):
                    raise level.error(f"sparse index type {kind} does not exist in LiteRT")
                stored = index_vector.vector(0, {1: "<i4", 2: "<u2", 3: "u1"}[kind])
                if stored is not None:
                    table.walker.spend(stored.nbytes, level.where, level.position)
