"""Constants of a graph module: reading them, adding new ones."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node


def tensor_of(model: GraphModule, node: Node) -> torch.Tensor | None:
    """The tensor behind a get_attr node, None for any other node or attribute."""
    if node.op != "get_attr":
        return None
    found: Any = model
    for part in str(node.target).split("."):
        found = getattr(found, part, None)
    return found.detach() if isinstance(found, torch.Tensor) else None


def add_constant(model: GraphModule, name: str, data: torch.Tensor) -> Node:
    """A get_attr node for a new constant, at the graph's insertion point; `name` gets a number that is free."""
    index = 0
    while hasattr(model, f"{name}_{index}"):
        index += 1
    model.register_buffer(f"{name}_{index}", data)
    node = model.graph.get_attr(f"{name}_{index}")
    mode = _fake_mode(model)
    node.meta["val"] = mode.from_tensor(data, static_shapes=True) if mode is not None else data
    return node


def _fake_mode(model: GraphModule) -> Any:
    """The mode of the graph's fake tensors: mixing two in one graph breaks tracing."""
    for node in model.graph.nodes:
        mode = getattr(node.meta.get("val"), "fake_mode", None)
        if mode is not None:
            return mode
    return None
