"""KeepLayersWhole: the unrolled steps of a recurrent layer become one call, which ExecuTorch's passes look at once.

Before:  x = dequantize(q); s0 = ...; q0 = quantize(s0); ...; s24 = ...; q24 = quantize(s24)
After:   x = dequantize(q); (s24,) = whole([x, weights...], body); q24 = quantize(s24)
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Graph, GraphModule, Node

from openneutron.executorch.fx import (
    GETITEM,
    arguments,
    copy_graph,
    is_dequantize,
    is_quantize,
    operator_name,
    shape_of,
    unrolled_from,
    value_of,
)
from openneutron.executorch.lower import layer_calls
from openneutron.executorch.lower.encoding import Constants
from openneutron.executorch.lower.layer_calls import LayerBodies
from openneutron.executorch.quantize.passes._attributes import tensor_of
from openneutron.executorch.upstream.names import with_graph
from openneutron.executorch.upstream.recompile_once import recompile_once

aten = torch.ops.aten
# Edge has no views, only copies, and the body is lowered as Edge's operators are.
_COPIES = {
    aten.select.int: aten.select_copy.int,
    aten.slice.Tensor: aten.slice_copy.Tensor,
    aten.unsqueeze.default: aten.unsqueeze_copy.default,
}


def contract_layers(module: GraphModule, bodies: LayerBodies) -> GraphModule:
    """A quantized module, still to be exported, with one call for each recurrent layer; the given one, if it has no layers.

    Exporting retraces the steps once more, so they are taken out before. The partitioner puts back what it cannot use.
    """
    if not any(map(unrolled_from, module.graph.nodes)):
        return module
    with recompile_once():  # the steps as Python would be half of the time
        made = GraphModule(module, copy_graph(module.graph))
        _contract_each(made.graph, lambda node: isinstance(node, Node) and node.op == "get_attr", bodies)
        made.recompile()
    return made


def keep_layers_whole(
    program: ExportedProgram, delegated: Callable[[ExportedProgram, Node], bool], bodies: LayerBodies
) -> ExportedProgram:
    """A program with one call for each layer that `delegated` accepts in this form; the given one, if it has no layers."""
    if not any(unrolled_from(node) for node in program.graph.nodes):
        return program
    graph = copy_graph(program.graph)
    _contract_each(graph, Constants(program).__contains__, bodies)
    calls = [node for node in graph.nodes if operator_name(node) == layer_calls.OPERATOR]
    if not calls:
        return program
    made = with_graph(program, GraphModule(program.graph_module, graph), program.graph_signature)
    for call in calls:
        if not delegated(made, call):
            expand(call)
    made.graph_module.recompile()
    return made


def _contract_each(graph: Graph, is_constant: Callable[[object], bool], bodies: LayerBodies) -> None:
    """Put one call in the place of each layer that can be one."""
    layers: dict[str, list[Node]] = {}
    for node in graph.nodes:
        if unrolled_from(node) and operator_name(node) not in (layer_calls.OPERATOR, GETITEM) and not _is_border(node):
            layers.setdefault(unrolled_from(node), []).append(node)
    for nodes in layers.values():
        layer = _layer(nodes, is_constant)
        if layer is not None:
            _contract(layer, bodies)


def _is_border(node: Node) -> bool:
    return is_quantize(node) or is_dequantize(node)


@dataclass(frozen=True)
class _Layer:
    """What goes into a body, in graph order, what it reads from outside, and which of its values are read outside."""

    nodes: list[Node]
    inputs: list[Node]
    outputs: list[Node]


def _layer(nodes: list[Node], is_constant: Callable[[object], bool]) -> _Layer | None:
    """A layer's operators with the quantizes and dequantizes between them; None where it cannot be one call."""
    inside = set(nodes)
    graph = nodes[0].graph
    for node in list(graph.nodes):
        source = node.args[0] if _is_border(node) else None
        ours = source in inside or (is_dequantize(node) and is_constant(source))
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
    if not outputs or max(order[node] for node in inputs) > min(readers) or not all(map(_has_sound_scales, body)):
        return None
    return _Layer(body, inputs, list(outputs))


def _has_sound_scales(node: Node) -> bool:
    """Whether a quantize or dequantize can be computed; of one that cannot, the whole program's check tells the user."""
    if not _is_border(node):
        return True
    given = arguments(node)
    if "scale" in given:
        return 0 < given["scale"] < float("inf")
    found = tensor_of(node.graph.owning_module, given["scales"])  # type: ignore[arg-type]
    return found is None or bool(((found > 0) & found.isfinite()).all())


def _contract(layer: _Layer, bodies: LayerBodies) -> None:
    """Put one call in the layer's place; quantizes that are read outside stay there too."""
    first = layer.nodes[0]
    inside = set(layer.nodes)
    name = bodies.add(_body(layer))
    leaving = [node for node in layer.nodes if is_quantize(node) and any(user not in inside for user in node.users)]
    graph = first.graph
    with graph.inserting_before(_first_reader(layer, inside)):
        call = graph.call_function(torch.ops.openneutron.whole.default, (layer.inputs, name))
        call.meta = {key: value for key, value in _representative(layer).meta.items() if key != "val"}
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


def _first_reader(layer: _Layer, inside: set[Node]) -> Node:
    readers = {user for node in layer.nodes for user in node.users if user not in inside}
    return next(node for node in layer.nodes[0].graph.nodes if node in readers)


def _representative(layer: _Layer) -> Node:
    """An operator of the layer, which knows the module and the line that it comes from."""
    return next(
        node for node in layer.nodes if unrolled_from(node) and not is_quantize(node) and not is_dequantize(node)
    )


def _body(layer: _Layer) -> Graph:
    body = Graph()
    copies: dict[Node, Node] = {}
    for node in layer.inputs:
        copies[node] = body.placeholder(node.name)
        copies[node].meta = {"val": _known_value(node), **node.meta}
    for node in layer.nodes:
        copies[node] = body.node_copy(node, copies.__getitem__)
        copies[node].target = _COPIES.get(node.target, node.target)  # type: ignore[call-overload]
        if value_of(node) is None:
            given = arguments(copies[node])
            dtype = given["dtype"] if is_quantize(node) else torch.float32
            copies[node].meta["val"] = torch.empty(shape_of(given["input"]), dtype=dtype, device="meta")
    body.output(tuple(copies[node] for node in layer.outputs))
    return body


def _known_value(node: Node) -> Any:
    """What a graph that was not exported yet does not say of an attribute: its sizes."""
    if value_of(node) is not None or node.op != "get_attr":
        return value_of(node)
    return tensor_of(node.graph.owning_module, node).to("meta")  # type: ignore[union-attr, arg-type]


def expand(call: Node) -> None:
    """Put a body's operators back in the place of its call."""
    body, graph = layer_calls.find_body(str(call.args[1])), call.graph
    copies = dict(zip(body.placeholders, call.args[0], strict=True))  # type: ignore[arg-type]
    with graph.inserting_before(call):
        for node in body.graph.nodes:
            if node.op == "call_function":
                copies[node] = graph.node_copy(node, copies.__getitem__)
                copies[node].meta["val"] = _in_this_program(value_of(node), value_of(call)[0])
    results = [copies[node] for node in body.results]
    for part in list(call.users):
        part.replace_all_uses_with(results[part.args[1]])  # type: ignore[call-overload, index]
        graph.erase_node(part)
    graph.erase_node(call)


def _in_this_program(value: torch.Tensor, beside: torch.Tensor) -> torch.Tensor:
    """A tensor like `value`, which another trace made, with the fake mode of this program's tensors."""
    return beside.new_empty(value.shape, dtype=value.dtype)
