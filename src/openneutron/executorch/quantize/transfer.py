"""Gives one method's quantized module the ranges and weights of another's, whose operators are the same.

The methods of a program that share weights and states must round them alike. They are calls of one model with inputs of other
sizes, so their graphs have the same operators in the same order.

Example:
    >>> transfer(quantized_decode, quantized_prefill)
    ''
"""

from __future__ import annotations

from typing import Final

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import is_dequantize, is_quantize, operator_name

# torch.export writes a reshape as a view where its input is dense, which may depend on sizes.
_VIEWS: Final = frozenset({"aten.view.default", "aten.reshape.default", "aten._unsafe_view.default"})


def transfer(source: GraphModule, target: GraphModule) -> str:
    """Copy scales, zero points and constants in place; return "" or the first difference that leaves `target` as it was."""
    pairs = list(zip(source.graph.nodes, target.graph.nodes, strict=False))
    for one, other in pairs:
        if _kind(one) != _kind(other) or len(one.all_input_nodes) != len(other.all_input_nodes):
            return f"{_describe(one)} where the other has {_describe(other)}"
    if len(source.graph.nodes) != len(target.graph.nodes):
        return f"{len(source.graph.nodes)} operators and {len(target.graph.nodes)}"
    for one, other in pairs:
        if one.op == "get_attr":
            _copy_constant(source, str(one.target), target, str(other.target))
        elif is_quantize(one) or is_dequantize(one):
            other.args = (other.args[0], *(old if isinstance(old, Node) else new for new, old in _settings(one, other)))
    target.recompile()
    return ""


def _settings(one: Node, other: Node) -> list[tuple[object, object]]:
    return list(zip(one.args[1:], other.args[1:], strict=True))


def _copy_constant(source: GraphModule, name: str, target: GraphModule, place: str) -> None:
    """Copy a tensor; one of another shape depends on the size of the inputs, not on data."""
    value, old = _tensor(source, name), _tensor(target, place)
    if value.shape != old.shape or value.dtype is not old.dtype:
        return
    owner, _, last = place.rpartition(".")
    module = target.get_submodule(owner)
    if last in dict(module.named_buffers(recurse=False)):
        setattr(module, last, value.detach())
    else:
        delattr(module, last)
        module.register_buffer(last, value.detach())


def _tensor(module: GraphModule, name: str) -> torch.Tensor:
    owner, _, last = name.rpartition(".")
    found: torch.Tensor = getattr(module.get_submodule(owner), last)
    return found


def _kind(node: Node) -> tuple[str, str]:
    name = operator_name(node) if node.op == "call_function" else ""
    return node.op, "a view" if name in _VIEWS else name


def _describe(node: Node) -> str:
    return f"{_kind(node)[1] or node.op} ({node.name})"
