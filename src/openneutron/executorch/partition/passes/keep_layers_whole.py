"""KeepLayersWhole: the unrolled steps of a recurrent layer become one call, which ExecuTorch's passes look at once.

Before:  x = dequantize(q); s0 = ...; q0 = quantize(s0); ...; s24 = ...; q24 = quantize(s24)
After:   x = dequantize(q); (s24,) = whole([x, weights...], body); q24 = quantize(s24)
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.export import ExportedProgram
from torch.fx import Graph, GraphModule, Node

from openneutron.executorch.fx import is_dequantize, is_quantize, unrolled_from, value_of
from openneutron.executorch.lower import whole
from openneutron.executorch.lower.encoding import Constants

aten = torch.ops.aten
# Edge has no views, only copies, and the body is lowered as Edge's operators are.
_COPIES = {
    aten.select.int: aten.select_copy.int,
    aten.slice.Tensor: aten.slice_copy.Tensor,
    aten.unsqueeze.default: aten.unsqueeze_copy.default,
}


def keep_layers_whole(program: ExportedProgram, delegated: Callable[[ExportedProgram, Node], bool]) -> ExportedProgram:
    """A program with one call for each layer that `delegated` accepts in this form; the given one, without any."""
    graph = copy.deepcopy(program.graph) if any(map(unrolled_from, program.graph.nodes)) else program.graph
    layers: dict[str, list[Node]] = {}
    for node in graph.nodes:
        if unrolled_from(node) and not is_quantize(node) and not is_dequantize(node):
            layers.setdefault(unrolled_from(node), []).append(node)
    constants = Constants(program)
    found = [_layer(nodes, constants) for nodes in layers.values()]
    calls = [_contract(layer) for layer in found if layer is not None]
    if not calls:
        return program
    made = program._update(GraphModule(program.graph_module, graph), program.graph_signature)
    for call in calls:
        if not delegated(made, call):
            expand(call)
            whole.forget(call.args[1])  # type: ignore[arg-type]
    made.graph_module.recompile()
    return made


@dataclass(frozen=True)
class _Layer:
    """What goes into a body, in graph order, what it reads from outside, and which of its values are read outside."""

    nodes: list[Node]
    inputs: list[Node]
    outputs: list[Node]


def _layer(nodes: list[Node], constants: Constants) -> _Layer | None:
    """A layer's operators with the quantizes and dequantizes between them; None where it cannot be one call."""
    inside = set(nodes)
    graph = nodes[0].graph
    for node in list(graph.nodes):
        source = node.args[0] if is_quantize(node) or is_dequantize(node) else None
        ours = source in inside or (is_dequantize(node) and source in constants)
        if ours and (is_quantize(node) or all(user in inside for user in node.users)):
            inside.add(node)
    order = {node: at for at, node in enumerate(graph.nodes)}
    body = sorted(inside, key=order.__getitem__)
    inputs = list(dict.fromkeys(source for node in body for source in node.all_input_nodes if source not in inside))
    outputs: dict[Node, None] = {}
    for node in body:
        for user in node.users:
            if user in inside:
                continue
            if not is_quantize(node):
                return None  # something reads it in float
            outputs[node.args[0]] = None  # type: ignore[index]
    readers = [order[user] for node in body for user in node.users if user not in inside]
    if not outputs or max(order[node] for node in inputs) > min(readers):
        return None
    return _Layer(body, inputs, list(outputs))


def _contract(layer: _Layer) -> Node:
    """Put one call in the layer's place; quantizes that are read outside stay there too."""
    first = layer.nodes[0]
    inside = set(layer.nodes)
    name = whole.remember(_body(layer))
    leaving = [node for node in layer.nodes if is_quantize(node) and any(user not in inside for user in node.users)]
    graph = first.graph
    with graph.inserting_before(_first_reader(layer, inside)):
        call = graph.call_function(torch.ops.openneutron.whole.default, (layer.inputs, name))
        call.meta = {key: value for key, value in _spoken_for(layer).meta.items() if key != "val"}
        call.meta["val"] = [value_of(node) for node in layer.outputs]
        for index, node in enumerate(layer.outputs):
            part = graph.call_function(operator.getitem, (call, index))
            part.meta = {**call.meta, "val": value_of(node)}
            for quantize in [one for one in leaving if one.args[0] is node]:
                outside = graph.call_function(quantize.target, (part, *quantize.args[1:]), quantize.kwargs)
                outside.meta = dict(quantize.meta)
                quantize.replace_all_uses_with(outside, delete_user_cb=lambda user: user not in inside)
    for node in reversed(layer.nodes):
        graph.erase_node(node)
    return call


def _first_reader(layer: _Layer, inside: set[Node]) -> Node:
    readers = {user for node in layer.nodes for user in node.users if user not in inside}
    return next(node for node in layer.nodes[0].graph.nodes if node in readers)


def _spoken_for(layer: _Layer) -> Node:
    """An operator of the layer, which knows the module and the line that it comes from."""
    return next(
        node for node in layer.nodes if unrolled_from(node) and not is_quantize(node) and not is_dequantize(node)
    )


def _body(layer: _Layer) -> Graph:
    body = Graph()
    copies: dict[Node, Node] = {}
    for node in layer.inputs:
        copies[node] = body.placeholder(node.name)
        copies[node].meta = dict(node.meta)
    for node in layer.nodes:
        copies[node] = body.node_copy(node, copies.__getitem__)
        copies[node].target = _COPIES.get(node.target, node.target)  # type: ignore[call-overload]
    body.output(tuple(copies[node] for node in layer.outputs))
    return body


def expand(call: Node) -> None:
    """Put a body's operators back in the place of its call."""
    body, graph = whole.body_of(call.args[1]), call.graph  # type: ignore[arg-type]
    copies = dict(zip(whole.placeholders(body), call.args[0], strict=True))  # type: ignore[arg-type]
    with graph.inserting_before(call):
        for node in body.nodes:
            if node.op == "call_function":
                copies[node] = graph.node_copy(node, copies.__getitem__)
    results = [copies[node] for node in whole.results(body)]
    for part in list(call.users):
        part.replace_all_uses_with(results[part.args[1]])  # type: ignore[call-overload, index]
        graph.erase_node(part)
    graph.erase_node(call)
