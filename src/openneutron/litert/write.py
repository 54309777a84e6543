"""Writing a `Model` as a LiteRT file.

Deterministic: the same model gives the same bytes. Constants that share memory share a buffer; buffers start at
multiples of 16 bytes. Operator codes and buffers appear in the order of first use; unused ones are left out.

Example:
    >>> Path("copy.tflite").write_bytes(write_model(read_model(data)))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flatbuffers
import numpy as np

from openneutron.errors import FormatError
from openneutron.litert import sparse as expand
from openneutron.litert.graph import Array, Graph, Metadata, Model, Operator, Quantization, Signature, Tensor
from openneutron.litert.operator_options import operator_number, options_number
from openneutron.litert.read import IDENTIFIER, SCHEMA_VERSION

# What the schema asks for (force_align) and what 128-bit loads of the weights need.
_ALIGNMENT = 16
# Flatbuffers end at 2 GiB; 64 MiB is left for tables, names and scales.
_MAX_INSIDE = (1 << 31) - (64 << 20)
# Older readers look at a signed byte and find this number when the operator's own does not fit.
_PLACEHOLDER_CODE = 127
# Stands for an offset behind the flatbuffer until its size is known; 0 and 1 would mean "none".
_UNKNOWN_OFFSET = 2


def write_model(model: Model, *, buffers_after: bool = False) -> bytes:
    """The bytes of a `.tflite` file.

    `buffers_after` puts the constants behind the flatbuffer, as files over 2 GiB must; they do so by themselves.
    """
    chunks = _Chunks()
    for graph in model.graphs:
        for tensor in graph.tensors:
            chunks.add_tensor(tensor)
    large = [op.custom_options for graph in model.graphs for op in graph.operators if op.large_custom_options]
    if not buffers_after and chunks.total <= _MAX_INSIDE and not large:
        return bytes(_Writer(model, chunks, None, []).finish())

    # Offsets are fixed-width fields, so a first pass with placeholders has the final size.
    behind = [*chunks.arrays, *(np.frombuffer(options, np.uint8) for options in large)]
    draft = [_UNKNOWN_OFFSET] * len(behind)
    count = len(chunks.arrays)
    end = len(_Writer(model, chunks, draft[:count], draft[count:]).finish())
    offsets = []
    for array in behind:
        end = _align(end)
        offsets.append(end)
        end += array.nbytes
    file = bytearray(end)
    head = _Writer(model, chunks, offsets[:count], offsets[count:]).finish()
    file[: len(head)] = head
    for offset, array in zip(offsets, behind, strict=True):
        file[offset : offset + array.nbytes] = array.data
    return bytes(file)


def _align(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT


class _Chunks:
    """The constants' bytes, each distinct piece of memory once; numbers start at 1 because buffer 0 is empty."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self.total = 0
        self._numbers: dict[tuple[int, int, bool], int] = {}
        self._owners: list[Array] = []
        self.of_tensor: dict[int, int] = {}

    def add_tensor(self, tensor: Tensor) -> None:
        """Register the value of a constant."""
        if tensor.data is None:
            return
        is_plain = tensor.sparsity is None and not tensor.dtype.is_opaque
        stored = tensor.data if tensor.sparsity is None else tensor.sparsity.values
        if is_plain and (stored.dtype != tensor.dtype.numpy or stored.shape != tensor.shape):
            found = f"its data is {stored.dtype} {list(stored.shape)}"
            raise FormatError(f"tensor {tensor.name!r} is {tensor.dtype} {list(tensor.shape)}, but {found}")
        # Memory is only an identity while its owner lives, so owners are kept.
        is_packed = tensor.dtype.bits < 8
        key = (stored.__array_interface__["data"][0], stored.nbytes, is_packed)
        shareable = stored.flags.c_contiguous and stored.nbytes > 0
        number = self._numbers.get(key) if shareable else None
        if number is None:
            flat = expand.pack(stored, tensor.dtype) if is_packed else np.ascontiguousarray(stored).reshape(-1)
            self.arrays.append(flat.view(np.uint8))
            self.total += flat.nbytes + _ALIGNMENT
            number = len(self.arrays)
            if shareable:
                self._numbers[key] = number
                self._owners.append(stored)
        self.of_tensor[id(tensor)] = number


class _Writer:
    """One flatbuffer; `offsets` and `large_offsets` place constants and custom options behind it."""

    def __init__(self, model: Model, chunks: _Chunks, offsets: list[int] | None, large_offsets: list[int]) -> None:
        self.model = model
        self.chunks = chunks
        self.offsets = offsets
        self.large_offsets = iter(large_offsets)
        self.codes: dict[tuple[str, str, int], int] = {}
        inside = chunks.total if offsets is None else 0
        operators = sum(len(graph.operators) for graph in model.graphs)
        tensors = sum(len(graph.tensors) for graph in model.graphs)
        scales = sum(len(one.quantization.scale) for graph in model.graphs for one in graph.tensors if one.quantization)
        # A guess that saves regrowing, which doubles: a tensor or operator takes some 200 bytes of tables, a channel a
        # scale of 4 bytes and a zero point of 8, or a range of 8 more.
        self.builder = flatbuffers.Builder(inside + 200 * (operators + tensors) + 20 * scales + 4096)

    def finish(self) -> memoryview:
        """Write everything, last things first."""
        b = self.builder
        buffers = self._buffers()
        graphs = self._tables([self._graph(graph) for graph in self.model.graphs])
        codes = self._tables([self._code(*key) for key in self.codes])
        description = b.CreateString(self.model.description)
        first = len(self.chunks.arrays) + 1
        metadata = self._tables([self._metadata(m, first + i) for i, m in enumerate(self.model.metadata)])
        signatures = self._tables([self._signature(signature) for signature in self.model.signatures])
        b.StartObject(10)
        b.PrependUint32Slot(0, SCHEMA_VERSION, 0)
        for slot, offset in ((1, codes), (2, graphs), (3, description), (4, buffers), (6, metadata), (7, signatures)):
            self._link(slot, offset)
        b.Finish(b.EndObject(), file_identifier=IDENTIFIER)
        return memoryview(b.Bytes)[b.Head() :]  # `Output` would copy it

    def _link(self, slot: int, offset: int) -> None:
        if offset:
            self.builder.PrependUOffsetTRelativeSlot(slot, offset, 0)

    def _tables(self, offsets: Sequence[int]) -> int:
        if not offsets:
            return 0
        b = self.builder
        b.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            b.PrependUOffsetTRelative(offset)
        return int(b.EndVector())

    def _vector(self, values: Sequence[Any] | Array, dtype: str) -> int:
        """A vector of scalars; 0 when there is nothing to write."""
        array = np.asarray(values, dtype)
        return int(self.builder.CreateNumpyVector(array)) if array.size else 0

    def _bytes(self, data: Array, alignment: int) -> int:
        b = self.builder
        b.StartVector(1, data.nbytes, alignment)
        b.head -= data.nbytes
        b.Bytes[b.head : b.head + data.nbytes] = data.data
        return int(b.EndVector())

    def _table(self, slots: int, *fields: tuple[Callable[..., None], int, Any, Any]) -> int:
        self.builder.StartObject(slots)
        for prepend, slot, value, default in fields:
            prepend(slot, value, default)
        return int(self.builder.EndObject())

    def _buffers(self) -> int:
        b = self.builder
        tables = [self._table(3)]
        for number, array in enumerate(self.chunks.arrays):
            # A value of no bytes stays inside: an empty vector is what tells it from an activation.
            if self.offsets is not None and array.nbytes:
                offset = (b.PrependUint64Slot, 1, self.offsets[number], 0)
                tables.append(self._table(3, offset, (b.PrependUint64Slot, 2, array.nbytes, 0)))
            else:
                tables.append(self._buffer(array))
        tables += [self._buffer(np.frombuffer(metadata.data, np.uint8)) for metadata in self.model.metadata]
        return self._tables(tables)

    def _buffer(self, array: Array) -> int:
        data = self._bytes(array, _ALIGNMENT)
        return self._table(3, (self.builder.PrependUOffsetTRelativeSlot, 0, data, 0))

    def _graph(self, graph: Graph) -> int:
        b = self.builder
        tensors = self._tables([self._tensor(tensor) for tensor in graph.tensors])
        operators = self._tables([self._operator(op) for op in graph.operators])
        inputs, outputs = self._vector(graph.inputs, "<i4"), self._vector(graph.outputs, "<i4")
        name = b.CreateString(graph.name)
        b.StartObject(6)
        for slot, offset in ((0, tensors), (1, inputs), (2, outputs), (3, operators), (4, name)):
            self._link(slot, offset)
        b.PrependInt32Slot(5, graph.debug_metadata_index, -1)
        return int(b.EndObject())

    def _tensor(self, tensor: Tensor) -> int:
        b = self.builder
        name = b.CreateString(tensor.name)
        shape = self._vector(tensor.shape, "<i4")
        signature = self._vector(tensor.shape_signature or (), "<i4")
        quantization = self._quantization(tensor.quantization, tensor.quantization_details)
        sparsity = tensor.sparsity.parameters.Pack(b) if tensor.sparsity is not None else 0
        variants = self._tables([self._variant(v.shape, v.dtype.number, v.has_rank) for v in tensor.variants])
        b.StartObject(11)
        b.PrependInt8Slot(1, tensor.dtype.number, 0)
        b.PrependUint32Slot(2, self.chunks.of_tensor.get(id(tensor), 0), 0)
        b.PrependBoolSlot(5, tensor.is_variable, False)
        b.PrependBoolSlot(8, tensor.has_rank, False)
        links = ((0, shape), (3, name), (4, quantization), (6, sparsity), (7, signature), (9, variants))
        for slot, offset in links:
            self._link(slot, offset)
        return int(b.EndObject())

    def _variant(self, shape: tuple[int, ...], dtype: int, has_rank: bool) -> int:
        b = self.builder
        sizes = self._vector(shape, "<i4")
        b.StartObject(3)
        self._link(0, sizes)
        b.PrependInt8Slot(1, dtype, 0)
        b.PrependBoolSlot(2, has_rank, False)
        return int(b.EndObject())

    def _quantization(self, quantization: Quantization | None, details: Any) -> int:
        if quantization is None and details is None:
            return 0
        b = self.builder
        q = quantization or Quantization((), ())
        vectors = [(0, q.minimum, "<f4"), (1, q.maximum, "<f4"), (2, q.scale, "<f4"), (3, q.zero_point, "<i8")]
        links = [(slot, self._vector(values, dtype)) for slot, values, dtype in vectors]
        kind = 0
        if details is not None:
            kind = {"CustomQuantizationT": 1, "BlockwiseQuantizationT": 2, "MultiAxisQuantizationT": 3}[
                type(details).__name__
            ]
            links.append((5, details.Pack(b)))
        b.StartObject(7)
        for slot, offset in links:
            self._link(slot, offset)
        b.PrependUint8Slot(4, kind, 0)
        b.PrependInt32Slot(6, q.axis, 0)
        return int(b.EndObject())

    def _operator(self, op: Operator) -> int:
        b = self.builder
        code = self.codes.setdefault((op.code, op.custom_code, op.version), len(self.codes))
        links = [(1, self._vector(op.inputs, "<i4")), (2, self._vector(op.outputs, "<i4"))]
        links += [(7, self._vector(op.mutating_variable_inputs, "u1")), (8, self._vector(op.intermediates, "<i4"))]
        is_large = op.large_custom_options
        if op.custom_options and not is_large:
            links.append((5, self._bytes(np.frombuffer(op.custom_options, np.uint8), _ALIGNMENT)))
        kinds = [0, 0]
        for number, options in enumerate((op.options, op.options2)):
            if options is not None:
                _, kinds[number] = options_number(options)
                links.append(((4, 12)[number], options.Pack(b)))
        b.StartObject(14)
        b.PrependUint32Slot(0, code, 0)
        b.PrependUint8Slot(3, kinds[0], 0)
        b.PrependUint8Slot(11, kinds[1], 0)
        b.PrependInt8Slot(6, op.custom_options_format, 0)
        b.PrependInt32Slot(13, op.debug_metadata_index, -1)
        if is_large:
            b.PrependUint64Slot(9, next(self.large_offsets), 0)
            b.PrependUint64Slot(10, len(op.custom_options), 0)
        for slot, offset in links:
            self._link(slot, offset)
        return int(b.EndObject())

    def _code(self, code: str, custom: str, version: int) -> int:
        b = self.builder
        number = operator_number(code)
        name = b.CreateString(custom) if custom else 0
        b.StartObject(4)
        b.PrependInt8Slot(0, min(number, _PLACEHOLDER_CODE), 0)
        self._link(1, name)
        b.PrependInt32Slot(2, version, 1)
        b.PrependInt32Slot(3, number, 0)
        return int(b.EndObject())

    def _metadata(self, metadata: Metadata, buffer: int) -> int:
        b = self.builder
        name = b.CreateString(metadata.name)
        b.StartObject(2)
        self._link(0, name)
        b.PrependUint32Slot(1, buffer, 0)
        return int(b.EndObject())

    def _signature(self, signature: Signature) -> int:
        b = self.builder
        inputs = self._tables([self._argument(*pair) for pair in signature.inputs])
        outputs = self._tables([self._argument(*pair) for pair in signature.outputs])
        key = b.CreateString(signature.key)
        b.StartObject(5)
        for slot, offset in ((0, inputs), (1, outputs), (2, key)):
            self._link(slot, offset)
        b.PrependUint32Slot(4, signature.graph, 0)
        return int(b.EndObject())

    def _argument(self, name: str, tensor: int) -> int:
        b = self.builder
        text = b.CreateString(name)
        b.StartObject(2)
        self._link(0, text)
        b.PrependUint32Slot(1, tensor, 0)
        return int(b.EndObject())
