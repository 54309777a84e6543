"""Reads a LiteRT model completely, as plain data."""

from __future__ import annotations

import struct
from collections.abc import Iterator
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
_RANGES = {"INT8": (-128, 127), "UINT8": (0, 255), "INT16": (-(1 << 15), (1 << 15) - 1)}
_TENSORS = 1 << 20  # far more than any model has: bounds the time for hostile files
# Bytes of all tensors of a graph. The checker keeps eight bytes for each; large files may have more.
MOST_BYTES, _BYTES_PER_BYTE = 1 << 25, 64
_OPTIONS_OF = {name: options for name, options in OPERATORS.values() if options}
_ENUMERATED = {"Padding": 1, "FusedActivationFunction": 5}  # the last member of each
_MOST_VERSION = 99  # of an operator: LiteRT's highest has two digits
_SCHEMA_VERSION = 3  # the only one that LiteRT loads
_ARCHIVE_END = struct.Struct("<12s2IH")  # counts, bytes of the list of files, where it begins, bytes of a comment
_OLD_CODES = 127  # larger operator numbers do not fit the field that old readers use


@dataclass(frozen=True)
class Tensor:
    """One tensor of a graph.

    `data` are the bytes of a constant; `form` is everything that the file says about it except name, data and open shape.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    scale: tuple[float, ...] = ()
    zero_point: tuple[int, ...] = ()
    axis: int = 0
    data: memoryview | None = None
    at: int = 0  # byte of the file where `data` begins
    variable: bool = False
    more: tuple[Any, ...] = ()  # rank, ranges of the quantization and variants, exactly as written
    buffer: int = 0
    open_shape: tuple[int, ...] = ()  # -1 where the caller may choose another size than in `shape`

    @property
    def item(self) -> int:
        """Size of one element in bytes, 0 for types without a fixed size."""
        return ITEMS.get(self.dtype, 0)

    @property
    def size(self) -> int:
        """Size of all elements in bytes, 0 if it is known only at run time."""
        return prod(self.shape) * self.item

    @property
    def quantization(self) -> tuple[float, int]:
        """Scale and zero point of a per-tensor quantization; (0, 0) without one."""
        if len(self.scale) != 1 or len(self.zero_point) > 1:
            return 0.0, 0
        return self.scale[0], self.zero_point[0] if self.zero_point else 0

    @property
    def form(self) -> tuple[Any, ...]:
        """The properties that must be equal for one tensor to replace another."""
        axis = self.axis if len(self.scale) > 1 else 0
        return self.dtype, self.shape, exact(self.scale), self.zero_point, axis, self.variable, self.more


@dataclass(frozen=True)
class Operator:
    """One operator of a graph.

    `options` are by field name; `attributes` is everything that must be equal in two files for the same meaning.
    """

    number: int
    code: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: dict[str, Any]
    custom: bytes = b""
    offset: int = 0
    attributes: tuple[Any, ...] = ()
    intermediates: tuple[int, ...] = ()


def is_plain(op: Operator) -> bool:
    """Return whether a builtin operator has nothing but its options, at any version."""
    extra, kind, _, changed, debug = op.attributes[3]
    return not (op.custom or extra or kind or changed or op.intermediates) and debug == -1


@dataclass
class Graph:
    """One subgraph; `label` is its name and its number for debuggers."""

    tensors: list[Tensor] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    label: tuple[bytes, int] = (b"", -1)

    @property
    def size(self) -> int:
        """Size of all tensors in bytes."""
        return sum(tensor.size for tensor in self.tensors)


@dataclass(frozen=True)
class Signature:
    """A signature, which names a graph's arguments: (name, tensor) of each input and output."""

    key: bytes
    graph: int
    inputs: tuple[tuple[bytes, int], ...]
    outputs: tuple[tuple[bytes, int], ...]
    at: int = 0


@dataclass(frozen=True)
class Model:
    """The complete content of a file; `spare` describes the first unused part in words, empty if there is none."""

    graphs: list[Graph]
    description: bytes
    metadata: tuple[tuple[bytes, bytes], ...]
    signatures: tuple[Signature, ...]
    spare: str = ""


def exact(values: Any) -> Any:
    """Convert floats to bytes, so that only equal bits compare equal: -0.0 differs from 0.0, and a NaN equals itself."""
    if isinstance(values, float):
        return struct.pack("<d", values)
    return tuple(exact(one) for one in values) if isinstance(values, tuple | list) else values


def read_model(data: bytes, *, archive: bool = False) -> Model:
    """Read a .tflite file; refuse one with bytes outside its tables, vectors, strings and buffers.

    With `archive` it may end with a zip archive: labels and other files that describe a model, which no operator reads.
    """
    model = root(data, b"TFL3", "the model")
    if model.scalar(0, "I", 0) != _SCHEMA_VERSION:
        raise Refused("the schema version is not 3", model.position)
    codes = [_code(table) for table in model.tables(1, "an operator code")]
    buffers = [_contents(data, table) for table in model.tables(4, "a buffer")]
    if buffers and buffers[0][0] is not None:
        raise Refused("buffer 0, which stands for none, has data", buffers[0][1])
    most = max(MOST_BYTES, _BYTES_PER_BYTE * len(data))
    used = _Used()
    graphs = [_graph(table, codes, buffers, used, most) for table in model.tables(2, "a graph")]
    metadata = []
    for table in model.tables(6, "metadata"):
        number = table.scalar(1, "I", 0)
        if number >= len(buffers):
            raise Refused(f"metadata in buffer {number} of {len(buffers)}", table.position)
        used.buffers.add(number)
        metadata.append((table.text(0), bytes(buffers[number][0] or b"")))
    numbers = model.vector(5, "i")  # buffers of metadata, as old files name them
    signatures = tuple(_signature(table, graphs) for table in model.tables(7, "a signature"))
    description = model.text(3)
    model.ledger.close(_archive(data) if archive else None)
    return Model(graphs, description, tuple(metadata), signatures, used.spare(len(buffers), len(codes), numbers))


def _archive(data: bytes) -> int:
    """Return the position where a zip archive at the end of the file begins; the file's end if there is none."""
    last = len(data) - _ARCHIVE_END.size
    if last < 0 or data[last : last + 4] != b"PK\5\6":
        return len(data)
    size, start = _ARCHIVE_END.unpack_from(data, last)[1:3]
    for base in (0, last - size - start):  # positions may count from the file's beginning or the archive's
        first = base + min(_files(data, base + start, size), default=-base)
        if first > 0 and base + start + size == last and data[first : first + 4] == b"PK\3\4":
            return first
    return len(data)


def _files(data: bytes, at: int, size: int) -> Iterator[int]:
    """Yield the positions of the files in an archive."""
    end = at + size
    while at + 46 <= end and data[at : at + 4] == b"PK\1\2":
        name, extra, comment = struct.unpack_from("<3H", data, at + 28)
        yield struct.unpack_from("<I", data, at + 42)[0]
        at += 46 + name + extra + comment


@dataclass
class _Used:
    """Buffers and operator codes that are used."""

    buffers: set[int] = field(default_factory=lambda: {0})
    codes: set[int] = field(default_factory=set)

    def spare(self, buffers: int, codes: int, numbers: tuple[int, ...]) -> str:
        """Describe the first part of the file that nothing uses, "" if there is none."""
        if numbers:
            return "metadata buffers of the old kind"
        for kind, count, used in (("buffer", buffers, self.buffers), ("operator code", codes, self.codes)):
            if left := sorted(set(range(count)) - used):
                return f"{kind} {left[0]}, which nothing uses"
        return ""


_Code = tuple[str, bytes, int]  # name, custom name, version


def _code(table: Table) -> _Code:
    old, number = table.scalar(0, "b", 0), table.scalar(3, "i", 0)
    if old < 0 or number < 0 or (number and old and old != min(number, _OLD_CODES)):
        raise Refused(f"an operator is number {old} and number {number}", table.position)
    number = max(old, number)
    if not 1 <= table.scalar(2, "i", 1) <= _MOST_VERSION:
        raise Refused(f"operator {number} of version {table.scalar(2, 'i', 1)}", table.position)
    name, _ = OPERATORS.get(number, (f"operator {number}", ""))
    return name, table.text(1), table.scalar(2, "i", 1)


Contents = tuple[memoryview | None, int]


def _contents(data: bytes, table: Table) -> Contents:
    """Return the bytes of a buffer, and their position in the file."""
    found, at = table.raw(0), table.target(0) + 4
    outside = _outside(data, table, (1, 2), "a buffer")
    if outside is not None:
        if found is not None:
            raise Refused("a buffer has data inside and behind the flatbuffer", table.position)
        return outside
    return (found, at) if found is not None and len(found) else (None, 0)


def _outside(data: bytes, table: Table, slots: tuple[int, int], kind: str) -> Contents | None:
    """Return the bytes behind the flatbuffer that two fields name; None if both fields are absent."""
    offset, size = (table.scalar(slot, "Q", 0) for slot in slots)
    if not offset and not size:
        return None
    if offset < 2 or not size or offset + size > len(data):
        raise Refused(f"{kind} of {size} bytes at {offset} leaves the file", table.position)
    table.ledger.note(offset, offset + size, f"{kind} behind the flatbuffer")
    return memoryview(data)[offset : offset + size], offset


def _signature(table: Table, graphs: list[Graph]) -> Signature:
    number = table.scalar(4, "I", 0)
    if number >= len(graphs):
        raise Refused(f"a signature names graph {number} of {len(graphs)}", table.position)
    sides = []
    for slot, border in ((0, graphs[number].inputs), (1, graphs[number].outputs)):
        pairs = tuple((one.text(0), one.scalar(1, "I", 0)) for one in table.tables(slot, "an argument"))
        for name, index in pairs:
            if index not in border:
                raise Refused(f"a signature names {name!r}, which is no input or output", table.position)
        sides.append(pairs)
    return Signature(table.text(2), number, sides[0], sides[1], table.position)


def _graph(table: Table, codes: list[_Code], buffers: list[Contents], used: _Used, most: int) -> Graph:
    graph = Graph(inputs=table.vector(1, "i"), outputs=table.vector(2, "i"))
    graph.label = table.text(4), table.scalar(5, "i", -1)
    for part in table.tables(0, "a tensor"):
        graph.tensors.append(_tensor(part, buffers, most))
        used.buffers.add(graph.tensors[-1].buffer)
    count = len(graph.tensors)
    if graph.size > most:
        text = (
            f"tensors of {graph.size} bytes: the checker keeps eight for each, and takes {most} for a file of this size"
        )
        raise Refused(text, table.position)
    if count > _TENSORS:
        raise Refused(f"{count} tensors", table.position)
    for number, part in enumerate(table.tables(3, "an operator")):
        graph.operators.append(_operator(part, number, count, codes, used))
    if any(not 0 <= one < count for one in (*graph.inputs, *graph.outputs)):
        raise Refused("an input or output names a tensor that does not exist", table.position)
    _check_writers(graph)
    _check_zero_points(graph)
    return graph


def _check_zero_points(graph: Graph) -> None:
    """Refuse a zero point outside its type, except in an LSTM's intermediates: LiteRT takes the low 32 bits of those."""
    intermediates = {index for op in graph.operators for index in op.intermediates}
    for index, tensor in enumerate(graph.tensors):
        if index in intermediates or tensor.dtype not in _RANGES:
            continue
        low, high = _RANGES[tensor.dtype]
        if not all(low <= one <= high for one in tensor.zero_point):
            raise Refused(f"tensor {tensor.name!r} has a zero point outside {tensor.dtype}")


def _check_writers(graph: Graph) -> None:
    """Refuse a tensor with two writers: it is written by one operator, the caller, the file, or an earlier run."""
    given = set(graph.inputs)
    if len(given) != len(graph.inputs):
        raise Refused("a tensor is two inputs")
    written = set(given)
    for op in graph.operators:
        for index in op.outputs:
            if index < 0:
                continue
            tensor = graph.tensors[index]
            if index in written or tensor.variable or tensor.data is not None:
                kind = "a variable" if tensor.variable else "written twice" if index in written else "a constant"
                raise Refused(f"operator {op.number} ({op.code}) writes {tensor.name!r}, which is {kind}", op.offset)
            written.add(index)
    for index in given:
        if graph.tensors[index].variable or graph.tensors[index].data is not None:
            raise Refused(f"input {graph.tensors[index].name!r} is a variable or a constant")


def _operator(part: Table, number: int, count: int, codes: list[_Code], used: _Used) -> Operator:
    index = part.scalar(0, "I", 0)
    if index >= len(codes):
        raise Refused(f"operator {number} has code {index} of {len(codes)}", part.position)
    used.codes.add(index)
    inputs, outputs, inner = part.vector(1, "i"), part.vector(2, "i"), part.vector(8, "i")
    if any(not -1 <= one < count for one in (*inputs, *outputs)) or any(not 0 <= one < count for one in inner):
        raise Refused(f"operator {number} names a tensor that does not exist", part.position)
    code, custom, version = codes[index]
    kind, options = _options(part, code)
    extra = bytes(part.raw(5) or b"")
    outside = _outside(bytes(part.data), part, (9, 10), "options") if part.has(9) or part.has(10) else None
    if outside is not None:
        if extra:
            raise Refused(f"operator {number} has custom options inside and behind the flatbuffer", part.position)
        extra = bytes(outside[0] or b"")
    changed = part.vector(7, "?")
    name = f"{code} {custom.decode(errors='replace')}" if custom else code
    values = tuple(sorted((key, exact(value)) for key, value in options.items()))
    rest = extra, part.scalar(6, "b", 0), version, changed, part.scalar(13, "i", -1)
    return Operator(number, code, inputs, outputs, options, custom, part.position, (name, kind, values, rest), inner)


def _tensor(table: Table, buffers: list[Contents], most: int) -> Tensor:
    number = table.scalar(1, "b", 0)
    dtype = TYPES[number] if 0 <= number < len(TYPES) else f"type {number}"
    shape = table.vector(0, "i")
    name = table.text(3).decode(errors="replace")
    scale: tuple[float, ...] = ()
    zero: tuple[int, ...] = ()
    axis = 0
    details: tuple[Any, ...] = ()
    quantization = table.table(4, "a quantization")
    if quantization is not None:
        scale, zero, axis = quantization.vector(2, "f"), quantization.vector(3, "q"), quantization.scalar(6, "i", 0)
        details = exact((quantization.vector(0, "f"), quantization.vector(1, "f")))
        if quantization.scalar(4, "B", 0) or quantization.has(5):
            raise Refused(f"tensor {name!r} has a quantization that the checker does not read", table.position)
    buffer = table.scalar(2, "I", 0)
    if buffer >= max(len(buffers), 1):
        raise Refused(f"tensor {name!r} is in buffer {buffer} of {len(buffers)}", table.position)
    data, at = buffers[buffer] if buffer else (None, 0)
    variants = tuple(
        (one.vector(0, "i"), one.scalar(1, "b", 0), one.scalar(2, "?", False)) for one in table.tables(9, "a variant")
    )
    variable, signature, rank = table.scalar(5, "?", False), table.vector(7, "i"), table.scalar(8, "?", False)
    if signature and (
        len(signature) != len(shape) or any(a not in (-1, b) for a, b in zip(signature, shape, strict=True))
    ):
        raise Refused(f"tensor {name!r} has shape {list(shape)} and signature {list(signature)}", table.position)
    more = rank, details if any(details) else (), variants
    made = Tensor(name, shape, dtype, scale, zero, axis, data, at, variable, more, buffer, signature)
    if any(size < 0 for size in shape) or made.size > most:
        text = f"tensor {name!r} has shape {list(shape)}; the checker takes {most} bytes of a file of this size"
        raise Refused(text, table.position)
    if data is not None and (table.has(6) or (made.item and len(data) != prod(shape) * made.item)):
        raise Refused(f"tensor {name!r} has {len(data)} bytes of data for {made.size}", table.position)
    if variable and data is not None:
        raise Refused(f"tensor {name!r} is a variable and a constant", table.position)
    return made


def _options(part: Table, code: str) -> tuple[tuple[str, str], dict[str, Any]]:
    kinds = ["", ""]
    found: dict[str, Any] = {}
    for union, (slot, known) in enumerate(((3, OPTIONS), (11, OPTIONS_2))):
        kind = part.scalar(slot, "B", 0)
        if not kind:
            if part.has(slot + 1):
                raise Refused("options of no type", part.position)
            continue
        kinds[union], fields = known.get(kind, (f"options {kind}", {}))
        table = part.table(slot + 1, f"the options of {code}")
        if table is None:
            raise Refused("a type of options without options", part.position)
        if kinds[union] != _OPTIONS_OF.get(code, kinds[union]):
            raise Refused(f"{code} with {kinds[union]}", part.position)
        found |= {field: _value(table, at, how, default) for at, (field, how, default) in fields.items()}
    for name, most in _ENUMERATED.items():
        if not 0 <= found.get(name, 0) <= most:
            raise Refused(f"{code} with {name} {found[name]}", part.position)
    return (kinds[0], kinds[1]), found


def _value(table: Table, slot: int, kind: str, default: Any) -> Any:
    if kind == "s":
        return table.text(slot)
    if kind == "t":
        return table.has(slot)  # not read, so a file that has it is refused
    if kind.startswith("v"):
        return bytes(table.raw(slot) or b"") if kind == "vB" else table.vector(slot, kind[1:])
    return table.scalar(slot, kind, default)
