"""Reading a LiteRT file: a bounds-checked walk from bytes to `Model`.

Weights are never copied: constants are read-only views of `data`, which therefore stays alive with the model. A
damaged file gives a FormatError that names the graph, tensor or operator and the byte; it never reads outside the
file, loops, or takes more memory than a small multiple of it.

Example:
    >>> model = read_model(Path("model.tflite").read_bytes(), source="model.tflite")
    >>> model.main.tensors[model.main.inputs[0]].shape
    (1, 32, 32, 3)
"""

from __future__ import annotations

from typing import Any, NamedTuple

from openneutron.errors import FormatError
from openneutron.litert.check_graph import check_model
from openneutron.litert.check_sizes import check_sizes
from openneutron.litert.graph import Graph, Metadata, Model, Operator, Signature
from openneutron.litert.light_options import options_class
from openneutron.litert.operator_options import operator_names, options_of, options_unions
from openneutron.litert.read_tensor import Buffers, read_tensor, unpack_object
from openneutron.litert.walker import Table, Walker

IDENTIFIER = b"TFL3"
# The only schema version LiteRT has ever loaded; the file says it again beside the identifier.
SCHEMA_VERSION = 3


# Custom operators of files that another compiler made, and for what.
_COMPILED = {"ethos-u": "for Arm's Ethos-U by Vela", "edgetpu-custom-op": "for Google's Edge TPU"}


class _Code(NamedTuple):
    number: int
    custom: str
    version: int


def read_model(data: bytes | memoryview, *, source: str = "<bytes>") -> Model:
    """Read a `.tflite` file; `source` is the name errors show.

    Example:
        >>> read_model(b"nonsense", source="a.tflite")
        Traceback (most recent call last):
        openneutron.errors.FormatError: a.tflite, byte 4: the file identifier is b'ense', not b'TFL3'...
    """
    walker = Walker(data, source)
    root = walker.root(IDENTIFIER)
    if root.u32(0) != SCHEMA_VERSION:
        raise root.error(f"the schema version is {root.u32(0)}, not {SCHEMA_VERSION}")
    buffers = Buffers(walker, root.positions(4))
    codes = [_read_code(walker.table(position, f"operator code {i}")) for i, position in enumerate(root.positions(1))]
    for code in codes:
        # Such files have no checkable order of operators, so further errors would only confuse.
        if elsewhere := _COMPILED.get(code.custom):
            hint = "give the .tflite it was made from"
            raise FormatError(f"it was compiled {elsewhere} already", where=source, hint=hint)
    graphs = [
        _read_graph(walker.table(position, f"graph {number}"), number, codes, buffers)
        for number, position in enumerate(root.positions(2))
    ]
    model = Model(
        graphs=graphs,
        description=root.text(3),
        signatures=[_read_signature(walker.table(at, f"signature {i}")) for i, at in enumerate(root.positions(7))],
        metadata=[_read_metadata(walker.table(at, f"metadata {i}"), buffers) for i, at in enumerate(root.positions(6))],
    )
    check_model(model, source)
    check_sizes(model, source)
    return model


def _read_code(table: Table) -> _Code:
    # Files from before 2020 only have the old byte, later ones put 127 there when the number does not fit.
    return _Code(max(table.i8(0), table.i32(3)), table.text(1), table.i32(2, 1))


def _read_graph(table: Table, number: int, codes: list[_Code], buffers: Buffers) -> Graph:
    walker = table.walker
    tensors = [
        read_tensor(walker.table(position, f"graph {number}, tensor {index}"), buffers)
        for index, position in enumerate(table.positions(0))
    ]
    operators = [
        _read_operator(walker.table(position, f"graph {number}, operator {index}"), codes)
        for index, position in enumerate(table.positions(3))
    ]
    return Graph(
        name=table.text(4),
        tensors=tensors,
        operators=operators,
        inputs=table.values(1, "<i4"),
        outputs=table.values(2, "<i4"),
        debug_metadata_index=table.i32(5, -1),
    )


def _read_operator(table: Table, codes: list[_Code]) -> Operator:
    index = table.u32(0)
    if index >= len(codes):
        raise table.error(f"operator code {index} does not exist, the file has {len(codes)}")
    code = codes[index]
    name = operator_names().get(code.number)
    if name is None:
        raise table.error(f"builtin operator {code.number} is unknown", hint="the file needs a newer LiteRT than 2.3")
    table.where += f" ({code.custom or name})"
    custom_options, is_large = _custom_options(table)
    return Operator(
        code=name,
        inputs=table.values(1, "<i4"),
        outputs=table.values(2, "<i4"),
        options=_options(table, name, 3, 0),
        custom_code=code.custom,
        custom_options=custom_options,
        version=code.version,
        intermediates=table.values(8, "<i4"),
        mutating_variable_inputs=[value != 0 for value in table.values(7, "u1")],
        options2=_options(table, name, 11, 1),
        custom_options_format=table.i8(6),
        large_custom_options=is_large,
        debug_metadata_index=table.i32(13, -1),
    )


def _custom_options(table: Table) -> tuple[bytes, bool]:
    """(bytes, stored behind the flatbuffer): custom options over 2 GB do not fit inside."""
    stored = table.vector(5, "u1")
    offset, size = table.u64(9), table.u64(10)
    is_large = stored is None and offset > 1
    if is_large:
        stored = table.walker.span(offset, size, table.where)
    if stored is None:
        return b"", False
    table.walker.spend(len(stored), table.where, table.position)
    return stored.tobytes(), is_large


def _options(table: Table, code: str, slot: int, union: int) -> Any:
    """The options object of one of the two unions (type byte in `slot`, table in the next)."""
    kind = table.u8(slot)
    if kind == 0:
        return None
    named = options_unions()[union].get(kind)
    if named is None:
        raise table.error(f"options type {kind} does not exist in LiteRT")
    cls = options_class(named)
    expected = options_of(code)
    # Operators that have no options of their own ignore what the file carries; for others a foreign table is damage.
    if expected is not None and cls is not expected:
        raise table.error(f"it carries {cls.__name__[:-1]} instead of {expected.__name__[:-1]}")
    body = table.table(slot + 1, table.where)
    return None if body is None else unpack_object(body, cls)


def _read_signature(table: Table) -> Signature:
    def arguments(slot: int) -> tuple[tuple[str, int], ...]:
        parts = [table.walker.table(position, table.where) for position in table.positions(slot)]
        return tuple((part.text(0), part.u32(1)) for part in parts)

    return Signature(table.text(2), table.u32(4), arguments(0), arguments(1))


def _read_metadata(table: Table, buffers: Buffers) -> Metadata:
    view = buffers.view(table.u32(1), table)
    if view is None:
        return Metadata(table.text(0), b"")
    table.walker.spend(len(view), table.where, table.position)
    return Metadata(table.text(0), view.tobytes())
