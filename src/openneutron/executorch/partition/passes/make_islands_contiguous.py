"""MakeIslandsContiguous: what stays on the CPU of a channels-last program computes on contiguous tensors.

Before:  x = dequantize(d) with d channels-last; y = add(x, c), c contiguous: the stock kernel refuses mixed dim orders
After:   k = _clone_dim_order(d, [0, 1, 2, 3]); x = dequantize(k); y = add(x, c)

Quantize and dequantize take any order, so the stored value is what is copied: a quarter of the bytes. Delegates take
either order, so nothing has to be copied back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from openneutron.executorch.fx import GETITEM, is_dequantize, is_quantize, operator_name, value_of
from openneutron.executorch.upstream.edge_names import edge_operator

_COPIES = frozenset({"dim_order_ops._clone_dim_order.default", "dim_order_ops._to_dim_order_copy.default"})


@dataclass(frozen=True)
class Copies:
    """The dim-order copies that were inserted, and how many bytes they move per run."""

    count: int
    bytes: int

    def __add__(self, other: Copies) -> Copies:
        return Copies(self.count + other.count, self.bytes + other.bytes)


def make_islands_contiguous(model: GraphModule) -> Copies:
    """Edit the graph in place; node values are brought up to date."""
    if not any(_is_channels_last(value_of(node)) for node in model.graph.nodes):
        return Copies(0, 0)
    copies: dict[Node, Node] = {}
    changed: set[Node] = set()
    for node in list(model.graph.nodes):
        if node.op != "call_function" or _is_delegate(node):
            continue
        if operator_name(node) == GETITEM and _is_delegate(node.args[0]):
            continue
        if not _takes_any_order(node):
            for source in node.all_input_nodes:
                if _is_channels_last(value_of(source)):
                    node.replace_input_with(source, _copy(model, source, node, copies))
                    changed.add(node)
        if node in changed or any(source in changed for source in node.all_input_nodes):
            propagate(node)
            changed.add(node)
    if copies:
        model.recompile()
    return Copies(len(copies), sum(_bytes(value_of(source)) for source in copies))


def copies_of(model: GraphModule) -> Copies:
    """The copies from channels-last to contiguous order that a lowered program makes."""
    made = [
        value_of(node.args[0])  # type: ignore[arg-type]
        for node in model.graph.nodes
        if operator_name(node) in _COPIES and value_of(node).is_contiguous()
    ]
    turned = [value for value in made if _is_channels_last(value)]
    return Copies(len(turned), sum(map(_bytes, turned)))


def _copy(model: GraphModule, source: Node, reader: Node, copies: dict[Node, Node]) -> Node:
    """A contiguous copy of `source`, made once for all readers."""
    if source not in copies:
        with model.graph.inserting_after(source):
            made = model.graph.call_function(
                edge_operator(torch.ops.dim_order_ops._clone_dim_order.default), (source,), {"dim_order": [0, 1, 2, 3]}
            )
        made.meta = {key: value for key, value in reader.meta.items() if key not in ("val", "tensor_meta", "spec")}
        made.meta["val"] = value_of(source).clone(memory_format=torch.contiguous_format)
        copies[source] = made
    return copies[source]


def propagate(node: Node) -> None:
    """Bring a node's fake value up to date with its inputs."""
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


def _is_delegate(node: Node) -> bool:
    from executorch.exir.delegate import executorch_call_delegate

    return node.target is executorch_call_delegate


def _takes_any_order(node: Node) -> bool:
    """Whether a node may read either order; a dequantize for operators is made contiguous with them."""
    if is_dequantize(node):
        return not node.users or any(user.op == "output" or is_quantize(user) for user in node.users)
    return is_quantize(node) or operator_name(node) in _COPIES or operator_name(node) == GETITEM


def _is_channels_last(value: Any) -> bool:
    """Whether a value is an image in channels-last order.

    With one channel the bytes are the same in either order and `is_contiguous` is true of both, but ExecuTorch takes the
    order from the strides, and its kernels refuse tensors whose orders differ in name only.
    """
    if not isinstance(value, torch.Tensor) or value.dim() != 4:
        return False
    return value.is_contiguous(memory_format=torch.channels_last) and tuple(value.dim_order()) != (0, 1, 2, 3)


def _bytes(value: torch.Tensor) -> int:
    """Bytes of a tensor's elements."""
    return value.numel() * value.element_size()
