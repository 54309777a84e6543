"""L0: the LiteRT graph as plain typed data, faithful to the file it came from.

A `Model` holds graphs, a `Graph` holds tensors and operators that name tensors by index. Constants are
read-only numpy views of the file; nothing here knows about bytes, flatbuffers or kernels.

Example:
    >>> model = read_model(Path("model.tflite").read_bytes())
    >>> [op.code for op in model.main.operators]
    ['CONV_2D', 'MAX_POOL_2D', 'FULLY_CONNECTED', 'SOFTMAX']
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
_Record = TypeVar("_Record")


class DType(StrEnum):
    """Every element type of LiteRT, in the order of the schema's numbers."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    INT32 = "int32"
    UINT8 = "uint8"
    INT64 = "int64"
    STRING = "string"
    BOOL = "bool"
    INT16 = "int16"
    COMPLEX64 = "complex64"
    INT8 = "int8"
    FLOAT64 = "float64"
    COMPLEX128 = "complex128"
    UINT64 = "uint64"
    RESOURCE = "resource"
    VARIANT = "variant"
    UINT32 = "uint32"
    UINT16 = "uint16"
    INT4 = "int4"
    BFLOAT16 = "bfloat16"
    INT2 = "int2"
    UINT4 = "uint4"
    FLOAT8_E4M3FN = "float8_e4m3fn"
    FLOAT8_E5M2 = "float8_e5m2"

    @property
    def numpy(self) -> np.dtype[Any]:
        """The numpy type that holds one element; types numpy lacks are held as integers of the same bits."""
        return _NUMPY[self]

    @property
    def itemsize(self) -> int:
        """Bytes of one element in memory (packed 4- and 2-bit types are held one per byte)."""
        return _NUMPY[self].itemsize

    @property
    def bits(self) -> int:
        """Bits of one element in the file: 4 or 2 for the packed types."""
        return _PACKED_BITS.get(self, 8 * _NUMPY[self].itemsize)

    @property
    def is_opaque(self) -> bool:
        """True when the bytes are not shape × item size: strings carry their own lengths, handles have none."""
        return self in _OPAQUE

    @property
    def number(self) -> int:
        """The schema's TensorType number."""
        return _NUMBERS[self]


DTYPES: tuple[DType, ...] = tuple(DType)
_NUMBERS = {dtype: number for number, dtype in enumerate(DTYPES)}
_PACKED_BITS = {DType.INT4: 4, DType.UINT4: 4, DType.INT2: 2}
_OPAQUE = frozenset({DType.STRING, DType.RESOURCE, DType.VARIANT})
_HELD_AS = {
    DType.STRING: "uint8",
    DType.RESOURCE: "uint8",
    DType.VARIANT: "uint8",
    DType.INT4: "int8",
    DType.UINT4: "uint8",
    DType.INT2: "int8",
    DType.BFLOAT16: "uint16",
    DType.FLOAT8_E4M3FN: "uint8",
    DType.FLOAT8_E5M2: "uint8",
}
_NUMPY = {dtype: np.dtype(_HELD_AS.get(dtype, dtype.value)) for dtype in DTYPES}


@dataclass(frozen=True)
class Quantization:
    """Affine quantization: real = scale · (stored − zero_point), per tensor or per slice of `axis`.

    Every scale is a Python float whose value is exactly a float32. `minimum` and `maximum` are the range some
    converters record beside it; no kernel reads them, they are only carried along.
    """

    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int = 0
    minimum: tuple[float, ...] = field(default=(), compare=False, repr=False)
    maximum: tuple[float, ...] = field(default=(), compare=False, repr=False)

    @property
    def per_channel(self) -> bool:
        """True when each slice of `axis` has its own scale."""
        return len(self.scale) > 1

    @property
    def scalar(self) -> tuple[float, int]:
        """(scale, zero point) of a per-tensor quantization."""
        if len(self.scale) != 1:
            raise ValueError(f"quantization has {len(self.scale)} scales, not one")
        return self.scale[0], self.zero_point[0]


@dataclass(frozen=True, eq=False)
class Sparsity:
    """How a sparse constant lies in the file; `Tensor.data` is its dense value.

    `values` are the stored bytes, `parameters` the schema's SparsityParametersT. Whoever replaces `Tensor.data`
    sets `Tensor.sparsity` to None.
    """

    values: Array
    parameters: Any


@dataclass(eq=False)
class Tensor:
    """One tensor. `data` is the constant's value with `data.shape == shape`, or None for an activation.

    Opaque types (`DType.is_opaque`) hold their raw bytes in a one-dimensional uint8 array instead.
    `shape_signature` has −1 where the model allows any size, and is None when the file has no signature.
    `quantization_details` is a schema object (block-wise, multi-axis, custom) that no kernel of ours reads.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    quantization: Quantization | None = None
    data: Array | None = None
    is_variable: bool = False
    shape_signature: tuple[int, ...] | None = None
    has_rank: bool = False
    sparsity: Sparsity | None = None
    quantization_details: Any = None
    variants: tuple[Variant, ...] = ()

    @property
    def is_constant(self) -> bool:
        """True when the value is in the file."""
        return self.data is not None

    @property
    def elements(self) -> int:
        """Number of elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def nbytes(self) -> int:
        """Bytes of the value in memory."""
        return self.elements * self.dtype.itemsize


class Variant(NamedTuple):
    """Element type of a VARIANT tensor (tensor lists)."""

    shape: tuple[int, ...]
    dtype: DType
    has_rank: bool


@dataclass(eq=False)
class Operator:
    """One operator: `code` is LiteRT's builtin name, or "CUSTOM" with `custom_code`.

    An input of −1 is an absent optional one. `options` is the schema's XxxOptionsT object of that builtin or None
    when the file has none; `options2` the same for the StableHLO family. `large_custom_options` says that the file
    keeps `custom_options` behind the flatbuffer.
    """

    code: str
    inputs: list[int]
    outputs: list[int]
    options: Any = None
    custom_code: str = ""
    custom_options: bytes = b""
    version: int = 1
    intermediates: list[int] = field(default_factory=list)
    mutating_variable_inputs: list[bool] = field(default_factory=list)
    options2: Any = None
    custom_options_format: int = 0
    large_custom_options: bool = False
    debug_metadata_index: int = -1

    @property
    def label(self) -> str:
        """The name to show: the builtin's, or the custom operator's own."""
        return self.custom_code if self.code == "CUSTOM" and self.custom_code else self.code


@dataclass(eq=False)
class Graph:
    """One subgraph; operators are in execution order."""

    name: str
    tensors: list[Tensor]
    operators: list[Operator]
    inputs: list[int]
    outputs: list[int]
    debug_metadata_index: int = -1

    def producers(self) -> dict[int, int]:
        """Tensor index → index of the operator that writes it."""
        return {tensor: index for index, op in enumerate(self.operators) for tensor in op.outputs}

    def consumers(self) -> dict[int, list[int]]:
        """Tensor index → indices of the operators that read it, in order, once each."""
        readers: dict[int, list[int]] = {}
        for index, op in enumerate(self.operators):
            for tensor in dict.fromkeys(op.inputs):
                if tensor >= 0:
                    readers.setdefault(tensor, []).append(index)
        return readers


class Signature(NamedTuple):
    """A named entry point: argument names → tensor indices of graph `graph`."""

    key: str
    graph: int
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]


class Metadata(NamedTuple):
    """A named blob such as "min_runtime_version"."""

    name: str
    data: bytes


@dataclass(eq=False)
class Model:
    """A whole LiteRT file. `graphs[0]` is the one that runs."""

    graphs: list[Graph]
    description: str = ""
    signatures: list[Signature] = field(default_factory=list)
    metadata: list[Metadata] = field(default_factory=list)

    @property
    def main(self) -> Graph:
        """The graph that runs when no signature is named."""
        return self.graphs[0]


def copy_model(model: Model) -> Model:
    """The model with graphs, tensors and operators of its own, for a pass that changes them; values are shared.

    Example:
        >>> drop_tensors(copy_model(model))
    """
    made = _twin(model)
    made.graphs, made.signatures, made.metadata = [], [*model.signatures], [*model.metadata]
    for graph in model.graphs:
        one = _twin(graph)
        one.tensors = [_twin(tensor) for tensor in graph.tensors]
        one.operators = [_twin(op) for op in graph.operators]
        for op in one.operators:
            op.inputs, op.outputs, op.intermediates = [*op.inputs], [*op.outputs], [*op.intermediates]
        one.inputs, one.outputs = [*graph.inputs], [*graph.outputs]
        made.graphs.append(one)
    return made


def _twin(record: _Record) -> _Record:
    """Return a shallow copy of a record; `copy.copy` takes five times as long."""
    made = object.__new__(type(record))
    vars(made).update(vars(record))
    return made
