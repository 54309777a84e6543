"""SplitDequantize: every reader of a stored value gets a dequantize of its own.

Before:  d = dequantize(q); y = f(d); z = g(d)
After:   d = dequantize(q); y = f(d); e = dequantize(q); z = g(e)

Readers that share one could only be delegated together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from torch.export import ExportedProgram
from torch.export.graph_signature import ExportGraphSignature
from torch.fx import Graph, GraphModule, Node

from openneutron.executorch.fx import copy_graph, is_dequantize, operator_name, value_of
from openneutron.executorch.upstream.names import with_graph


def split_dequantize(program: ExportedProgram) -> ExportedProgram:
    """A program in which no dequantize has two readers; the given one, when that is so already."""
    if not any(len(node.users) > 1 for node in program.graph.nodes if is_dequantize(node)) and not any(
        map(_is_read, program.graph.nodes)
    ):
        return program
    graph = copy_graph(program.graph)
    names: dict[str, str] = {}
    for node in list(graph.nodes):
        if _is_read(node):
            # A reader of a buffer just written reads the written value: with one dequantize they could not be separated.
            source = _twin(graph, node.args[1])
            node.replace_all_uses_with(source)
            names[node.name] = source.name
        if is_dequantize(node):
            # The program's outputs are known by name.
            for user in sorted(node.users, key=lambda user: user.op != "output")[1:]:
                user.replace_input_with(node, _twin(graph, node))
    return with_graph(program, GraphModule(program.graph_module, graph), _rename(program.graph_signature, names))


def _is_read(node: Node) -> bool:
    """Whether a value written to a buffer is read from there."""
    copies = operator_name(node) == "aten.copy_.default" and bool(node.users)
    source = node.args[1] if copies else None
    return isinstance(source, Node) and is_dequantize(source) and value_of(source).shape == value_of(node).shape


def _twin(graph: Graph, node: Any) -> Node:
    with graph.inserting_after(node):
        twin = graph.call_function(node.target, node.args, node.kwargs)
    twin.meta = dict(node.meta)
    return twin


def _rename(signature: ExportGraphSignature, names: Mapping[str, str]) -> ExportGraphSignature:
    specs = [
        dataclasses.replace(spec, arg=dataclasses.replace(spec.arg, name=names[spec.arg.name]))
        if spec.arg.name in names
        else spec
        for spec in signature.output_specs
    ]
    return dataclasses.replace(signature, output_specs=specs)
