"""Description of an ONNX model for `openneutron inspect`; nothing is imported."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from typing import Any

from openneutron.onnx.ops import rule_for
from openneutron.onnx.read import read_model
from openneutron.onnx.schemas import is_function
from openneutron.onnx.tensors import type_name


@dataclass(frozen=True)
class Border:
    """An input or output: open dimensions by name, "?" for unnamed ones; the shape may be missing."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]


@dataclass(frozen=True)
class Description:
    """Inputs, outputs, operators with their counts, and hints for compiling."""

    inputs: tuple[Border, ...]
    outputs: tuple[Border, ...]
    operators: dict[str, int]
    notes: tuple[str, ...]


def describe(source: str | os.PathLike[str] | bytes, name: str = "") -> Description:
    """Return the description of a model.

    Example:
        >>> describe("model.onnx").operators
        {'Conv': 20, 'Relu': 17}
    """
    model = read_model(source, name=name)
    stored = {one.name for one in model.graph.initializer}
    inputs = tuple(_border(one) for one in model.graph.input if one.name not in stored)
    outputs = tuple(_border(one) for one in model.graph.output)
    counts = Counter(f"{node.domain}.{node.op_type}" if node.domain else node.op_type for node in model.graph.node)
    return Description(inputs, outputs, dict(counts.most_common()), _notes(model, inputs))


def _border(one: Any) -> Border:
    kind = one.type.WhichOneof("value") or "nothing"
    if kind != "tensor_type":
        return Border(one.name, kind.removesuffix("_type"), ())
    tensor = one.type.tensor_type
    if not tensor.HasField("shape"):
        return Border(one.name, type_name(tensor.elem_type).lower(), ("shape not stated",))
    dims = tuple(int(dim.dim_value) if dim.dim_value else dim.dim_param or "?" for dim in tensor.shape.dim)
    return Border(one.name, type_name(tensor.elem_type).lower(), dims)


def _notes(model: Any, inputs: tuple[Border, ...]) -> tuple[str, ...]:
    imports = ", ".join(f"{one.domain or 'ai.onnx'} {one.version}" for one in model.opset_import)
    producer = " ".join(filter(None, (model.producer_name, model.producer_version)))
    notes = [f"opset {imports}{f', written by {producer}' if producer else ''}"]
    opened = [one.name for one in inputs if any(isinstance(size, str) for size in one.shape)]
    if opened:
        notes.append(f"open dimensions in {', '.join(opened)}: give --size when compiling")
    unknown = set()
    for node in model.graph.node:
        if rule_for(node.domain, node.op_type) is None and not _is_defined(model, node):
            unknown.add(node.op_type)
    if unknown:
        notes.append(f"not imported: {', '.join(sorted(unknown))}")
    return tuple(notes)


def _is_defined(model: Any, node: Any) -> bool:
    """Return whether ONNX defines the operator through others."""
    version = max((int(one.version) for one in model.opset_import if one.domain == node.domain), default=1)
    return is_function(node.op_type, version, node.domain)
