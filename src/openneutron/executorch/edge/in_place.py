"""WithoutInPlace: replaces in-place operators by their functional forms, if no other reader sees the change.

Before:  c = conv2d(x, w); y = relu_(c)
After:   c = conv2d(x, w); y = relu(c)
"""

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from openneutron.executorch.edge.draft import Unknown
from openneutron.executorch.fx import copy_graph, is_view, operator_name
from openneutron.executorch.upstream.names import OpOverload, overload_of, schema_of, with_graph


def without_in_place(program: ExportedProgram) -> ExportedProgram:
    """Return a program without in-place operators; the same program if it has none.

    Raises `Unknown` if a change is visible to others.
    """
    if not any(map(_is_in_place, program.graph.nodes)):
        return program
    graph = copy_graph(program.graph)
    for node in graph.nodes:
        if _is_in_place(node):
            target, changed = _functional(node), node.args[0]
            if not isinstance(changed, Node) or changed.op != "call_function" or len(changed.users) > 1:
                raise Unknown(f"{operator_name(node)} of a value that others read")
            if is_view(changed):
                raise Unknown(f"{operator_name(node)} of a view")
            node.target = target
    return with_graph(program, GraphModule(program.graph_module, graph), program.graph_signature)


def _is_in_place(node: Node) -> bool:
    return isinstance(node.target, OpOverload) and schema_of(node.target).is_mutable


def _functional(node: Node) -> OpOverload:
    """Return the functional operator with the same name and arguments."""
    assert isinstance(node.target, OpOverload)
    space, name = schema_of(node.target).name.split("::")
    packet = getattr(getattr(torch.ops, space), name.removesuffix("_"), None)
    overload = getattr(packet, overload_of(node.target), None) if name.endswith("_") else None
    given = [argument.name for argument in schema_of(node.target).arguments]
    if not isinstance(overload, OpOverload) or [one.name for one in schema_of(overload).arguments] != given:
        raise Unknown(operator_name(node))
    return overload
