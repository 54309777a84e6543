"""What a model keeps from call to call: buffers that `forward` changes. Calibrating and measuring leave them as they were."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule

from openneutron.executorch.quantize.passes._attributes import is_changed

States = dict[str, torch.Tensor]


def states_of(module: GraphModule) -> States:
    """Copies of the buffers that the module changes, by name.

    Example:
        >>> states = states_of(prepared)
        >>> prepared(frame)
        >>> restore(prepared, states)
    """
    names = {str(node.target) for node in module.graph.find_nodes(op="get_attr") if is_changed(node)}
    return {name: module.get_buffer(name).detach().clone() for name in sorted(names)}


def restore(module: GraphModule, states: States) -> None:
    """Put the buffers back."""
    with torch.no_grad():
        for name, value in states.items():
            module.get_buffer(name).copy_(value)


def part(module: GraphModule) -> None:
    """Give an exported module such buffers of its own: it shares all others with the caller's model."""
    for name, value in states_of(module).items():
        owner, _, last = name.rpartition(".")
        setattr(module.get_submodule(owner), last, value)


def apart(program: ExportedProgram) -> GraphModule:
    """A program as a module that may run without the caller's model noticing."""
    module = program.module(check_guards=False)
    part(module)
    return module
