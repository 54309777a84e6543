"""MakeIslandsContiguous: what stays on the CPU of a channels-last program computes on contiguous tensors.

Before:  d = delegate(...) channels-last; y = add(d, c) with c contiguous: the stock kernel refuses mixed dim orders
After:   k = _clone_dim_order(d, [0, 1, 2, 3]); y = add(k, c)

Quantize and dequantize take any order, and delegates take either, so nothing has to be copied back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from openneutron.executorch.fx import GETITEM, is_dequantize, is_quantize, operator_name, value_of

_COPIES = frozenset({"dim_order_ops._clone_dim_order.default", "dim_order_ops._to_dim_order_copy.default"})


@dataclass(frozen=True)
class Copies:
    """The dim-order copies that were inserted, and how many bytes they move per run."""

    count: int
    bytes: int


def make_islands_contiguous(model: GraphModule) -> Copies:
    """Edit the graph in place; node values are brought up to date."""
    from executorch.exir.delegate import executorch_call_delegate

    if not any(_is_channels_last(value_of(node)) for node in model.graph.nodes):
        return Copies(0, 0)
    copies: dict[Node, Node] = {}
    changed: set[Node] = set()
    for node in list(model.graph.nodes):
        if node.op != "call_function" or node.target is executorch_call_delegate:
            continue
        name = operator_name(node)
        if name == GETITEM and _from_delegate(node, executorch_call_delegate):
            continue
        if not (is_quantize(node) or is_dequantize(node) or name in _COPIES or name == GETITEM):
            for source in node.all_input_nodes:
                if _is_channels_last(value_of(source)):
                    node.replace_input_with(source, _copy(model, source, node, copies))
                    changed.add(node)
        if node in changed or any(source in changed for source in node.all_input_nodes):
            _propagate(node)
            changed.add(node)
    if copies:
        model.recompile()
    return Copies(len(copies), sum(_bytes(value_of(source)) for source in copies))


def _copy(model: GraphModule, source: Node, reader: Node, copies: dict[Node, Node]) -> Node:
    from executorch.exir.dialects._ops import ops

    if source not in copies:
        with model.graph.inserting_after(source):
            made = model.graph.call_function(
                ops.edge.dim_order_ops._clone_dim_order.default, (source,), {"dim_order": [0, 1, 2, 3]}
            )
        made.meta = {key: value for key, value in reader.meta.items() if key not in ("val", "tensor_meta", "spec")}
        made.meta["val"] = value_of(source).contiguous()
        copies[source] = made
    return copies[source]


def _propagate(node: Node) -> None:
    args, kwargs = map_arg((node.args, node.kwargs), value_of)
    mode = next((v.fake_mode for v in _values(args) if hasattr(v, "fake_mode")), None)
    if mode is not None:
        with mode:
            node.meta["val"] = node.target(*args, **kwargs)  # type: ignore[operator]


def _values(args: Any) -> list[Any]:
    found: list[Any] = []
    for arg in args if isinstance(args, (tuple, list)) else [args]:
        found += _values(arg) if isinstance(arg, (tuple, list)) else [arg]
    return found


def _from_delegate(node: Node, delegate: Any) -> bool:
    source = node.args[0]
    return isinstance(source, Node) and source.target is delegate


def _is_channels_last(value: Any) -> bool:
    if not isinstance(value, torch.Tensor) or value.dim() != 4 or value.is_contiguous():
        return False
    return value.is_contiguous(memory_format=torch.channels_last)


def _bytes(value: torch.Tensor) -> int:
    return value.numel() * value.element_size()
