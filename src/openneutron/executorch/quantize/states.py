"""State of a model: buffers that `forward` changes. Calibrating and measuring restore them."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule

from openneutron.errors import UnsupportedError
from openneutron.executorch.capture.functional import functional
from openneutron.executorch.fx import is_changed

States = dict[str, torch.Tensor]


def states_of(module: GraphModule) -> States:
    """Return copies of the buffers that the module changes, by name.

    Example:
        >>> states = states_of(prepared)
        >>> prepared(frame)
        >>> restore(prepared, states)
    """
    names = {str(node.target) for node in module.graph.find_nodes(op="get_attr") if is_changed(node)}
    for name in sorted(names & {name for name, _ in module.named_parameters()}):
        raise UnsupportedError(
            f"forward changes parameter {name} in place, which cannot be compiled: parameters are constants of the program",
            hint="register it with register_buffer",
        )
    return {name: module.get_buffer(name).detach().clone() for name in sorted(names)}


def restore(module: GraphModule, states: States) -> None:
    """Restore the buffers."""
    with torch.no_grad():
        for name, value in states.items():
            module.get_buffer(name).copy_(value)


def separate_buffers(module: GraphModule) -> None:
    """Give an exported module its own copies of these buffers; others stay shared with the caller's model."""
    for name, value in states_of(module).items():
        owner, _, last = name.rpartition(".")
        setattr(module.get_submodule(owner), last, value)


def separate_module(program: ExportedProgram) -> GraphModule:
    """Return a program as a module that can run without changing the caller's model."""
    module = functional(program).module(check_guards=False)
    separate_buffers(module)
    return module
