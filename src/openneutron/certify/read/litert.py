"""A LiteRT model as the checker sees it: tensors, operators and their options as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

from openneutron.certify.published import OPERATORS, OPTIONS, OPTIONS_2
from openneutron.certify.read.flat import Table, root
from openneutron.certify.refused import Refused

TYPES = (
    "FLOAT32", "FLOAT16", "INT32", "UINT8", "INT64", "STRING", "BOOL", "INT16", "COMPLEX64", "INT8", "FLOAT64",
    "COMPLEX128", "UINT64", "RESOURCE", "VARIANT", "UINT32", "UINT16", "INT4",
)  # fmt: skip
ITEMS = {
    "FLOAT32": 4, "FLOAT16": 2, "INT32": 4, "UINT8": 1, "INT64": 8, "BOOL": 1, "INT16": 2, "COMPLEX64": 8, "INT8": 1,
    "FLOAT64": 8, "COMPLEX128": 16, "UINT64": 8, "UINT32": 4, "UINT16": 2,
}  # fmt: skip
_TENSORS = 1 << 20  # far above any model; a file may claim anything
MOST_BYTES = 1 << 28  # of all tensors of a graph: tags of more would not fit the memory of a small machine


@dataclass(frozen=True)
class Tensor:
    """One tensor; `data` are the bytes of a constant."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    scale: tuple[float, ...] = ()
    zero_point: tuple[int, ...] = ()
    axis: int = 0
    data: memoryview | None = None
    at: int = 0  # byte of the file where `data` begins
    variable: bool = False

    @property
    def item(self) -> int:
        """Bytes of one element, 0 where that has no meaning."""
        return ITEMS.get(self.dtype, 0)

    @property
    def size(self) -> int:
        """Bytes of all elements."""
        return prod(self.shape) * self.item

    @property
    def quantization(self) -> tuple[float, int]:
        """Scale and zero point per tensor; (0, 0) where there is none."""
        if len(self.scale) != 1 or len(self.zero_point) > 1:
            return 0.0, 0
        return self.scale[0], self.zero_point[0] if self.zero_point else 0


@dataclass(frozen=True)
class Operator:
    """One operator; `options` by field name, `attributes` all that must be equal in two files for the same meaning."""

    number: int
    code: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: dict[str, Any]
    custom: bytes = b""
    offset: int = 0
    attributes: tuple[Any, ...] = ()
    intermediates: tuple[int, ...] = ()


@dataclass
class Graph:
    """One subgraph."""

    tensors: list[Tensor] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all tensors together."""
        return sum(tensor.size for tensor in self.tensors)


def read_model(data: bytes) -> list[Graph]:
    """All subgraphs of a .tflite file."""
    model = root(data, b"TFL3")
    codes = []
    for table in model.tables(1):
        number = max(table.scalar(0, "b", 0), table.scalar(3, "i", 0))
        codes.append((OPERATORS.get(number, f"operator {number}"), table.text(1)))
    buffers = [_contents(data, table) for table in model.tables(4)]
    return [_graph(table, codes, buffers) for table in model.tables(2)]


Contents = tuple[memoryview | None, int]


def _contents(data: bytes, table: Table) -> Contents:
    """The bytes of a buffer, and where they begin in the file."""
    offset, size = table.scalar(1, "Q", 0), table.scalar(2, "Q", 0)
    if offset > 1:
        if offset + size > len(data):
            raise Refused("a buffer leaves the file", table.position)
        return memoryview(data)[offset : offset + size], offset
    found = table.raw(0)
    return (found, table.target(0) + 4) if found is not None and len(found) else (None, 0)


def _graph(table: Table, codes: list[tuple[str, bytes]], buffers: list[Contents]) -> Graph:
    graph = Graph(inputs=table.vector(1, "i"), outputs=table.vector(2, "i"))
    for part in table.tables(0):
        graph.tensors.append(_tensor(part, buffers))
    count = len(graph.tensors)
    if graph.size > MOST_BYTES:
        raise Refused(f"tensors of {graph.size} bytes", table.position)
    if count > _TENSORS:
        raise Refused(f"{count} tensors", table.position)
    for number, part in enumerate(table.tables(3)):
        index = part.scalar(0, "I", 0)
        if index >= len(codes):
            raise Refused(f"operator {number} has code {index} of {len(codes)}", part.position)
        inputs, outputs, inner = part.vector(1, "i"), part.vector(2, "i"), part.vector(8, "i")
        if any(not -1 <= one < count for one in (*inputs, *outputs)) or any(not 0 <= one < count for one in inner):
            raise Refused(f"operator {number} names a tensor that does not exist", part.position)
        code, custom = codes[index]
        kind, options = _options(part)
        name = custom.decode(errors="replace") if code == "CUSTOM" else code
        attributes = (name, kind, tuple(sorted((k, _plain(v)) for k, v in options.items())), part.text(5))
        graph.operators.append(
            Operator(number, code, inputs, outputs, options, custom, part.position, attributes, inner)
        )
    if any(not 0 <= one < count for one in (*graph.inputs, *graph.outputs)):
        raise Refused("an input or output names a tensor that does not exist", table.position)
    return graph


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _tensor(table: Table, buffers: list[Contents]) -> Tensor:
    number = table.scalar(1, "b", 0)
    dtype = TYPES[number] if 0 <= number < len(TYPES) else f"type {number}"
    shape = table.vector(0, "i")
    scale: tuple[float, ...] = ()
    zero: tuple[int, ...] = ()
    axis = 0
    quantization = table.table(4)
    if quantization is not None:
        scale, zero, axis = quantization.vector(2, "f"), quantization.vector(3, "q"), quantization.scalar(6, "i", 0)
    buffer = table.scalar(2, "I", 0)
    data, at = buffers[buffer] if 0 < buffer < len(buffers) else (None, 0)
    sparse = table.table(6) is not None
    name = table.text(3).decode(errors="replace")
    made = Tensor(name, shape, dtype, scale, zero, axis, data, at, bool(table.scalar(5, "?", False)))
    if any(size < 0 for size in shape) or made.size > MOST_BYTES:
        raise Refused(f"tensor {name!r} has shape {list(shape)}", table.position)
    if data is not None and (sparse or (made.item and len(data) != made.size)):
        raise Refused(f"tensor {name!r} has {len(data)} bytes of data for {made.size}", table.position)
    return made


def _options(part: Table) -> tuple[str, dict[str, Any]]:
    for slot, known in ((3, OPTIONS), (11, OPTIONS_2)):
        kind = part.scalar(slot, "B", 0)
        table = part.table(slot + 1)
        if kind and table is not None:
            name, fields = known.get(kind, (f"options {kind}", {}))
            return name, {field: _value(table, at, how, default) for at, (field, how, default) in fields.items()}
    return "", {}


def _value(table: Table, slot: int, kind: str, default: Any) -> Any:
    if kind == "s":
        return table.text(slot)
    if kind == "t":
        return table.target(slot) != 0
    if kind.startswith("v"):
        return bytes(table.raw(slot) or b"") if kind == "vB" else table.vector(slot, kind[1:])
    return table.scalar(slot, kind, default)
