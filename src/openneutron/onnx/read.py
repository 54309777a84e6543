"""Read an ONNX file as a checked `ModelProto`: limits, external data, order of nodes, inlined functions.

Every defect of a file is reported in one sentence that names it, never as a protobuf traceback.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from openneutron.errors import FormatError, OpenNeutronError, OptionError, UnsupportedError
from openneutron.extras import need
from openneutron.files import read_file

# Protobuf cannot hold more than 2 GiB in one message, far beyond any NPU program.
LARGEST_BYTES = (1 << 31) - 1
# Before opset 7 broadcasting had other rules, and exporters have not written those for years.
OLDEST_OPSET = 7
# A recursion this deep means a damaged file: exporters nest a few levels.
_DEEPEST = 32


def read_model(source: str | os.PathLike[str] | bytes, *, name: str = "") -> Any:
    """Return the model of a file or of bytes: complete, checked, its nodes in order of execution.

    Example:
        >>> model = read_model("model.onnx")
        >>> [node.op_type for node in model.graph.node]
    """
    onnx = need("onnx")
    if isinstance(source, (bytes, bytearray, memoryview)):
        data, where, folder = bytes(source), name or "<bytes>", None
    else:
        where, folder = os.fspath(source), Path(source).resolve().parent
        _check_size(Path(source), where)
        data = read_file(source)
    model = _parse(onnx, data, where)
    _check_outline(onnx, model, where)
    _check_external(onnx, model, folder, where)
    try:
        model = _inline_functions(onnx, model)
        _sort(model.graph, set(), 0)
        _check(onnx, model, where)
    except OpenNeutronError as error:
        raise _error_at(error, where) from error
    return model


def opset_of(model: Any, domain: str = "") -> int:
    """Return the version of a domain's operators that the model was written for; 0 if it imports none."""
    names = ("", "ai.onnx") if domain in ("", "ai.onnx") else (domain,)
    return max((int(one.version) for one in model.opset_import if one.domain in names), default=0)


def _check_size(path: Path, where: str) -> None:
    try:
        size = path.stat().st_size
    except OSError:
        return  # the reader reports the error
    if size > LARGEST_BYTES:
        raise UnsupportedError(
            f"the file has {size:,} bytes; models over 2 GiB are not read", where=where,
            hint="no such model fits the chip: give a smaller one",
        )  # fmt: skip


def _parse(onnx: Any, data: bytes, where: str) -> Any:
    from google.protobuf.message import DecodeError

    if not data:
        raise FormatError("the file is empty", where=where, hint="export the model again")
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except (DecodeError, RuntimeError, ValueError) as error:
        raise FormatError(
            "this is no ONNX model, or it is damaged: its protobuf cannot be decoded", where=where,
            hint="export or copy it again",
        ) from error  # fmt: skip
    _check_text(model, where)
    if not model.ByteSize() or not model.HasField("graph"):
        raise FormatError("this is no ONNX model: it has no graph", where=where, hint="export the model again")
    return model


def _check_text(message: Any, where: str) -> None:
    """Check that every name is UTF-8: protobuf returns bytes for others, which no caller expects."""
    for field, value in message.ListFields():
        many = (value,) if isinstance(value, (str, bytes)) or hasattr(value, "ListFields") else value
        if field.type == field.TYPE_MESSAGE:
            for one in many:
                _check_text(one, where)
        elif field.type == field.TYPE_STRING:
            for one in many:
                if not isinstance(one, str):
                    raise FormatError(
                        f"{field.name} is not text: {one[:32]!r}", where=where, hint="export or copy the model again"
                    )


def _check_outline(onnx: Any, model: Any, where: str) -> None:
    """Check the versions, and that the graph has something to compute."""
    version = opset_of(model)
    newest = int(onnx.defs.onnx_opset_version())
    if not model.opset_import or (not version and any(node.domain in ("", "ai.onnx") for node in model.graph.node)):
        raise FormatError("it does not say which opset it uses", where=where, hint="export the model again")
    if version and version < OLDEST_OPSET:
        raise UnsupportedError(
            f"it uses opset {version}; opsets {OLDEST_OPSET} to {newest} are read", where=where,
            hint="convert it with onnx.version_converter, or export it again",
        )  # fmt: skip
    if version > newest:
        raise UnsupportedError(
            f"it uses opset {version}; the installed onnx {onnx.__version__} knows opsets up to {newest}", where=where,
            hint="install a newer onnx, or export for an older opset",
        )  # fmt: skip
    if not model.graph.output:
        raise FormatError("the graph has no outputs", where=where, hint="export the model again")


def _tensors(graph: Any, depth: int = 0) -> Iterator[Any]:
    """Yield every stored tensor of a graph and of those inside its nodes."""
    if depth > _DEEPEST:
        raise FormatError(f"graphs lie inside each other more than {_DEEPEST} deep", hint="export the model again")
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield sparse.values
        yield sparse.indices
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            if attribute.HasField("g"):
                yield from _tensors(attribute.g, depth + 1)
            for inner in attribute.graphs:
                yield from _tensors(inner, depth + 1)


def _check_external(onnx: Any, model: Any, folder: Path | None, where: str) -> None:
    """Load the tensors in files beside the model; each must lie inside the model's folder and within its file."""
    external = need("onnx.external_data_helper")
    for tensor in _tensors(model.graph):
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        if folder is None:
            raise OptionError(
                f"tensor {tensor.name!r} lies in another file", where=where, hint="give the model by its path"
            )
        fields = {entry.key: entry.value for entry in tensor.external_data}
        location = fields.get("location", "")
        path = (folder / location).resolve()
        if not location or not path.is_relative_to(folder):
            raise FormatError(
                f"tensor {tensor.name!r} names {location!r}, which is outside the model's folder", where=where,
                hint="put the data beside the model",
            )  # fmt: skip
        if not path.is_file():
            raise FormatError(
                f"tensor {tensor.name!r} lies in {location!r}, which is not there", where=where,
                hint="copy that file beside the model too",
            )  # fmt: skip
        try:
            offset, length = int(fields.get("offset", 0)), int(fields.get("length", 0))
        except ValueError:
            offset, length = -1, 0
        size = path.stat().st_size
        if offset < 0 or length < 0 or offset + length > size or size > LARGEST_BYTES:
            raise FormatError(
                f"tensor {tensor.name!r} is to be read from bytes {offset} to {offset + length} of {location!r}, "
                f"which has {size:,}",
                where=where, hint="the two files do not belong together, or the model is too large: export it again",
            )  # fmt: skip
        try:
            external.load_external_data_for_tensor(tensor, str(folder))
        except Exception as error:
            raise FormatError(f"tensor {tensor.name!r} cannot be read from {location!r}", where=where) from error
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]


def _inline_functions(onnx: Any, model: Any) -> Any:
    """Return the model with its own functions inlined."""
    if not model.functions:
        return model
    try:
        return need("onnx.inliner").inline_local_functions(model)
    except Exception as error:
        raise FormatError(f"its functions cannot be written out: {_first_line(error)}") from error


def _sort(graph: Any, outside: set[str], depth: int) -> None:
    """Sort the nodes of a graph and of the graphs inside it into an order of execution, in place."""
    if depth > _DEEPEST:
        raise FormatError(f"graphs lie inside each other more than {_DEEPEST} deep", hint="export the model again")
    known = outside | {one.name for one in graph.input} | {one.name for one in graph.initializer}
    known |= {one.values.name for one in graph.sparse_initializer} | {""}
    maker = {name: index for index, node in enumerate(graph.node) for name in node.output if name}
    needs = [
        {maker[name] for name in _reads(node, depth) if name in maker and name not in known} for node in graph.node
    ]
    readers: list[list[int]] = [[] for _ in needs]
    for index, before in enumerate(needs):
        for one in before:
            readers[one].append(index)
    waiting = [len(before) for before in needs]
    ready = [index for index, count in enumerate(waiting) if not count]
    order: list[int] = []
    while ready:  # the smallest first, so that sorted nodes keep their order
        index = heapq.heappop(ready)
        order.append(index)
        for reader in readers[index]:
            waiting[reader] -= 1
            if not waiting[reader]:
                heapq.heappush(ready, reader)
    if len(order) < len(needs):
        node = graph.node[next(index for index, count in enumerate(waiting) if count)]
        raise FormatError(f"{describe_node(node)} depends on its own result", hint="export the model again")
    known |= set(maker)
    if order != sorted(order):
        nodes = [type(graph.node[0]).FromString(graph.node[index].SerializeToString()) for index in order]
        del graph.node[:]
        graph.node.extend(nodes)
    for node in graph.node:
        for attribute in node.attribute:
            for inner in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
                _sort(inner, known, depth + 1)


def _reads(node: Any, depth: int) -> Iterator[str]:
    """Yield the names a node reads, including those read inside its graphs."""
    if depth > _DEEPEST:
        raise FormatError(f"graphs lie inside each other more than {_DEEPEST} deep", hint="export the model again")
    yield from node.input
    for attribute in node.attribute:
        for inner in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
            for one in inner.node:
                yield from _reads(one, depth + 1)
            yield from (output.name for output in inner.output)


def _check(onnx: Any, model: Any, where: str) -> None:
    """Run ONNX's own checker; operators of other domains are checked during import.

    It requires a shape for each input and output. Many models have none, and runtimes do not need it, so it is not required
    here.
    """
    borders = [one.type.tensor_type for one in (*model.graph.input, *model.graph.output) if _is_open(one)]
    for one in borders:
        one.shape.SetInParent()
    try:
        onnx.checker.check_model(model)
    except Exception as error:  # it raises its own class, and others from inside
        message = _first_line(error)
        if "No Op registered" in message or "No opset import for domain" in message:
            raise UnsupportedError(message, where=where, hint="its operators are not those of ONNX") from error
        raise FormatError(
            f"ONNX's checker refuses it: {message}", where=where, hint="export the model again"
        ) from error
    finally:
        for one in borders:
            one.ClearField("shape")


def _is_open(one: Any) -> bool:
    """Return whether an input or output is a tensor without a shape."""
    return one.type.WhichOneof("value") == "tensor_type" and not one.type.tensor_type.HasField("shape")


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    first = lines[0] if lines else type(error).__name__
    context = next((line for line in lines if line.startswith("==> Context")), "")
    return (first + (f" ({context.removeprefix('==> Context: ')})" if context else "")).rstrip(".")


def describe_node(node: Any) -> str:
    """Describe a node by its name, or by its first output if it has none.

    Example:
        >>> describe_node(node)
        'node `/conv1/Conv` (Conv)'
    """
    name = node.name or next((one for one in node.output if one), "")
    return f"node `{name}` ({node.op_type})"


def _error_at(error: OpenNeutronError, where: str) -> OpenNeutronError:
    return error if error.where else type(error)(error.message, where=where, hint=error.hint)
