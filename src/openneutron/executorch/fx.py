"""Reading FX nodes: names, bound arguments, quantize and dequantize, where a node comes from.

Everything works on ATen and Edge graphs alike, because operators are known by name: "aten.conv2d.default".
"""

from __future__ import annotations

import copy
import operator
import re
from enum import Enum
from functools import cache
from typing import Any

from torch.fx import Graph, Node

from openneutron.executorch.upstream.names import aten_operator, schema_of
from openneutron.onnx.names import ONNX_NODE
from openneutron.verdict import Reason

_QD = "quantized_decomposed."
QUANTIZE = frozenset({f"{_QD}quantize_per_tensor.default", f"{_QD}quantize_per_channel.default"})
DEQUANTIZE = frozenset({f"{_QD}dequantize_per_tensor.default", f"{_QD}dequantize_per_channel.default"})
PER_CHANNEL = frozenset({f"{_QD}quantize_per_channel.default", f"{_QD}dequantize_per_channel.default"})
GETITEM = "getitem"
_FLOAT = "openneutron_float"  # key of the reason why a node is computed in float
_UNROLLED = "openneutron_unrolled"  # key of the note on the steps of a recurrent layer


class FloatReason(Enum):
    """Why the quantizer leaves a node in float: code, message and hint of the verdict."""

    ASKED = "kept_float", "you asked to keep it in float", "take it out of exclude"
    LOSSY = (
        "lossy", "INT8 cannot represent its values on the calibration data",
        "scale them, or bound them with clamp, before this operator",
    )  # fmt: skip
    COUNTER = (
        "counter", "it only counts: no input changes it, and INT8 would stop at what calibration saw",
        "count in the application, which calls the model",
    )  # fmt: skip
    MIXED = (
        "mixed_ranges", "its parts have ranges that no one scale covers: each is dequantized with its own scale",
        "bring the parts to one range, or return them as outputs of their own",
    )  # fmt: skip


def operator_name(node: Node) -> str:
    """The operator of a call, "" for any other node.

    Example:
        >>> operator_name(node)
        'aten.convolution.default'
    """
    if node.op != "call_function":
        return ""
    if node.target is operator.getitem:
        return GETITEM
    return _name_of(node.target)


@cache
def _name_of(target: Any) -> str:
    """An operator's name; asked for so often that making it anew each time was a third of partitioning."""
    # An Edge operator wraps the ATen one it was made from.
    return str(aten_operator(target))


def is_quantize(node: Node) -> bool:
    """Whether the node is a static quantize."""
    return operator_name(node) in QUANTIZE


def is_dequantize(node: Node) -> bool:
    """Whether the node is a static dequantize."""
    return operator_name(node) in DEQUANTIZE


def arguments(node: Node) -> dict[str, Any]:
    """Every argument of a call by the name its schema gives it, defaults included."""
    parameters = _parameters(node.target)
    if parameters is None:
        return dict(enumerate(node.args)) | dict(node.kwargs)  # type: ignore[return-value]
    args, kwargs = node.args, node.kwargs
    given = len(args)
    return {
        name: args[position] if position < given else kwargs.get(name, default)
        for position, (name, default) in enumerate(parameters)
    }


@cache
def _parameters(target: Any) -> tuple[tuple[str, Any], ...] | None:
    """The parameters in an operator's schema with their defaults; torch makes the list anew whenever it is asked."""
    schema = schema_of(target)
    if schema is None:
        return None
    return tuple((one.name, one.default_value if one.has_default_value() else None) for one in schema.arguments)


def value_of(node: Node) -> Any:
    """The fake tensor (or tuple of them) behind a node, None when the graph does not say."""
    return node.meta.get("val")


def shape_of(node: Node) -> tuple[Any, ...]:
    """Logical shape of a node's tensor; symbolic sizes stay as they are."""
    value = value_of(node)
    return tuple(value.shape) if value is not None and hasattr(value, "shape") else ()


def is_static(node: Node) -> bool:
    """Whether every size of the node's tensors is a plain number."""
    values = value_of(node)
    values = values if isinstance(values, (tuple, list)) else [values]
    return all(isinstance(size, int) for value in values for size in getattr(value, "shape", ()))


def keep_float(node: Node, reason: FloatReason | None) -> None:
    """Note on a node why it is computed in float, None if it is not; the note outlives exporting and lowering.

    Readers of the node may store its result in INT8 all the same, and then nothing else tells it from a quantized one.
    """
    if reason is not None or is_kept_float(node):
        node.meta["custom"] = {**(node.meta.get("custom") or {}), _FLOAT: reason and reason.name}


def is_kept_float(node: Node) -> bool:
    """Whether the node is computed in float for one of `FloatReason`."""
    return bool((node.meta.get("custom") or {}).get(_FLOAT))


def float_reason(node: Node) -> Reason:
    """Return why a node that is kept in float is."""
    code, message, hint = FloatReason[(node.meta.get("custom") or {})[_FLOAT]].value
    return Reason(code, message, node.name, hint)


def note_unrolled(node: Node, layer: str = "") -> None:
    """Note on a recurrent layer that what is made in its place belongs together; copies of its metadata have the note.

    A node that is part of one already gets the name of that `layer`.
    """
    node.meta["custom"] = {**(node.meta.get("custom") or {}), _UNROLLED: layer or node.name}


def unrolled_from(node: Node) -> str:
    """The recurrent layer whose step the node is part of, "" for any other node; the note outlives exporting."""
    return str((node.meta.get("custom") or {}).get(_UNROLLED, ""))


def copy_graph(graph: Graph) -> Graph:
    """Return a copy with unchanged node names; torch's own copy renames an argument called "input" or "id"."""
    made = copy.deepcopy(graph)
    for old, new in zip(graph.nodes, made.nodes, strict=True):
        new.name = old.name
    return made


def is_view(node: Node) -> bool:
    """Whether the node shows the memory of its first argument, so that a change in place is seen through both."""
    schema = schema_of(node.target)
    return schema is not None and not schema.is_mutable and any(one.alias_info is not None for one in schema.returns)


def users(node: Node) -> list[Node]:
    """The readers of a node, in graph order of registration."""
    return list(node.users)


def debug_handles(node: Node) -> tuple[int, ...]:
    """The node's debug handles, () when none were assigned yet."""
    handle = node.meta.get("debug_handle")
    if handle is None:
        return ()
    return (int(handle),) if isinstance(handle, int) else tuple(int(one) for one in handle)


def module_path(node: Node) -> str:
    """Dotted path of the innermost nn.Module behind the node, "" at top level."""
    stack = node.meta.get("nn_module_stack") or {}
    paths = [entry[0] for entry in stack.values()]
    return str(paths[-1]).removeprefix("L['self'].") if paths else ""


def layer_of(node: Node) -> str:
    """What a person calls the layer behind the node: the ONNX node it was imported from, or the path of its module."""
    return str((node.meta.get("custom") or {}).get(ONNX_NODE) or module_path(node))


def module_types(node: Node) -> tuple[str, ...]:
    """Class names of the nn.Modules around the node, outermost first, as "torch.nn.modules.conv.Conv2d"."""
    found = []
    for entry in (node.meta.get("nn_module_stack") or {}).values():
        kind = entry[1]
        found.append(kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}")
    return tuple(found)


_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')
_LIBRARY = re.compile(r"[/\\](site|dist)-packages[/\\](torch|torchao|executorch)[/\\]")


def origin(node: Node) -> str:
    """What the node was called when its program was first captured, "" where that was not recorded."""
    name, sources = "", node.meta.get("from_node")
    while sources:
        name, sources = sources[-1].name, sources[-1].from_node
    return str(name)


def label(node: Node) -> str:
    """What a reader knows the node by: its name in an ONNX model, else its own."""
    return str((node.meta.get("custom") or {}).get(ONNX_NODE) or node.name)


def source_line(node: Node) -> str:
    """Where the node was written: "file.py:12, conv1", as much of it as is known, or the ONNX node it comes from."""
    imported = (node.meta.get("custom") or {}).get(ONNX_NODE)
    if imported:
        return f"node `{imported}`"
    frames = list(_FRAME.finditer(node.meta.get("stack_trace") or ""))
    own = [frame for frame in frames if not _LIBRARY.search(frame["file"])]
    parts = []
    if own:
        file = re.split(r"[/\\]", own[-1]["file"])[-1]
        parts.append(f"{file}:{own[-1]['line']}")
    path = module_path(node)
    return ", ".join([*parts, path] if path else parts)


def is_changed(node: Node) -> bool:
    """Return whether the graph changes the buffer of a get_attr node: it is a state, not a constant."""
    same = node.graph.find_nodes(op="get_attr", target=node.target, sort=False)
    return any(changes(user, one) for one in same for user in one.users)


def changes(call: Node, buffer: Node) -> bool:
    """Return whether a call writes to this argument."""
    schema = schema_of(call.target)
    return call.op == "call_function" and schema is not None and schema.is_mutable and call.args[:1] == (buffer,)
