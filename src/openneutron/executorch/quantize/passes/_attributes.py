"""Constants of a graph module: reading and adding them."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import is_changed


def tensor_of(model: GraphModule, node: Node) -> torch.Tensor | None:
    """Return the tensor of a get_attr node, None for other nodes and attributes and for a buffer that the graph changes."""
    if node.op != "get_attr" or is_changed(node):
        return None
    found: Any = model
    for part in str(node.target).split("."):
        found = getattr(found, part, None)
    return found.detach() if isinstance(found, torch.Tensor) else None


def add_constant(model: GraphModule, name: str, data: torch.Tensor) -> Node:
    """Return a get_attr node for a new constant, at the graph's insertion point; a number makes `name` unique."""
    index = 0
    while hasattr(model, f"{name}_{index}"):
        index += 1
    model.register_buffer(f"{name}_{index}", data)
    node = model.graph.get_attr(f"{name}_{index}")
    mode = _fake_mode(model)
    node.meta["val"] = mode.from_tensor(data, static_shapes=True) if mode is not None else data
    return node


def _fake_mode(model: GraphModule) -> Any:
    """Return the graph's fake tensor mode: mixing two in one graph breaks tracing."""
    for node in model.graph.nodes:
        mode = getattr(node.meta.get("val"), "fake_mode", None)
        if mode is not None:
            return mode
    return None
