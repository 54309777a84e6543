"""WrittenBuffers: turns a buffer that is written in place into a result of the program, which the runtime copies back.

Before:  joined = cat(buffer, x); copy_(buffer, slice(joined)); return y
After:   joined = cat(buffer, x); return slice(joined), y         the signature maps the first result to the buffer
"""

from __future__ import annotations

import dataclasses

from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind, OutputSpec, TensorArgument
from torch.fx import GraphModule, Node

from openneutron.executorch.edge.draft import Unknown
from openneutron.executorch.fx import copy_graph, is_view, operator_name, shape_of, value_of
from openneutron.executorch.upstream.names import with_graph

_COPY = "aten.copy_.default"


def written_buffers(program: ExportedProgram) -> ExportedProgram:
    """Return a program whose buffers are written by its results; the same if it writes none in place.

    Raises `Unknown` if the order of reading and writing matters.
    """
    if not any(operator_name(node) == _COPY for node in program.graph.nodes):
        return program
    signature = program.graph_signature
    buffers = {spec.arg.name: spec.target for spec in signature.input_specs if spec.kind is InputKind.BUFFER}
    graph = copy_graph(program.graph)
    order = {node: at for at, node in enumerate(graph.nodes)}
    written: dict[str, Node] = {}
    for node in list(graph.nodes):
        if operator_name(node) != _COPY:
            continue
        buffer, value = node.args[:2]
        if not isinstance(buffer, Node) or buffer.name not in buffers or buffer.name in written or node.users:
            raise Unknown(f"{_COPY} to what is no buffer, or is written twice or read again")
        if not isinstance(value, Node) or value.op != "call_function" or not _is_like(value, buffer):
            raise Unknown(f"{_COPY} of another shape or type")
        if graph.output_node() in value.users:
            raise Unknown(f"{_COPY} of what is read again as a result")
        if _last_reader(buffer, node, order) > order[node]:
            raise Unknown(f"{_COPY} to a buffer that is read later")
        written[buffer.name] = value
        graph.erase_node(node)
    end = graph.output_node()
    results = end.args[0]
    assert isinstance(results, (tuple, list))
    changed = [(name, written[name]) for name in buffers if name in written]
    end.args = ((*(value for _, value in changed), *results),)
    specs = [
        OutputSpec(OutputKind.BUFFER_MUTATION, TensorArgument(value.name), buffers[name]) for name, value in changed
    ]
    signature = dataclasses.replace(signature, output_specs=[*specs, *signature.output_specs])
    return with_graph(program, GraphModule(program.graph_module, graph), signature)


def _is_like(value: Node, buffer: Node) -> bool:
    return shape_of(value) == shape_of(buffer) and value_of(value).dtype == value_of(buffer).dtype


def _last_reader(node: Node, writer: Node, order: dict[Node, int]) -> int:
    """Return the position of the last operator that reads a buffer, directly or through views."""
    readers = [user for user in node.users if user is not writer]
    through = (_last_reader(user, writer, order) for user in readers if is_view(user))
    return max([order[node], *(order[user] for user in readers), *through])
