"""WithoutInPlace: operators that work in place become those that do not, where nobody can tell the difference.

Before:  c = conv2d(x, w); y = relu_(c)
After:   c = conv2d(x, w); y = relu(c)
"""

from __future__ import annotations

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from openneutron.executorch.edge.draft import Unknown
from openneutron.executorch.fx import copied, is_view, operator_name


def without_in_place(program: ExportedProgram) -> ExportedProgram:
    """A program without such operators; the given one, when it has none. `Unknown` where one changes what others see."""
    if not any(map(_is_in_place, program.graph.nodes)):
        return program
    graph = copied(program.graph)
    for node in graph.nodes:
        if _is_in_place(node):
            target, changed = _functional(node), node.args[0]
            if not isinstance(changed, Node) or changed.op != "call_function" or len(changed.users) > 1:
                raise Unknown(f"{operator_name(node)} of a value that others read")
            if is_view(changed):
                raise Unknown(f"{operator_name(node)} of a view")
            node.target = target
    return program._update(GraphModule(program.graph_module, graph), program.graph_signature)


def _is_in_place(node: Node) -> bool:
    return isinstance(node.target, OpOverload) and node.target._schema.is_mutable


def _functional(node: Node) -> OpOverload:
    """The operator of the same name and arguments that leaves them as they are."""
    assert isinstance(node.target, OpOverload)
    space, name = node.target._schema.name.split("::")
    packet = getattr(getattr(torch.ops, space), name.removesuffix("_"), None)
    overload = getattr(packet, node.target._overloadname, None) if name.endswith("_") else None
    given = [argument.name for argument in node.target._schema.arguments]
    if not isinstance(overload, OpOverload) or [one.name for one in overload._schema.arguments] != given:
        raise Unknown(operator_name(node))
    return overload
