"""The drawings of a LiteRT model: its graphs by module, NeutronGraphs opened, constants as attributes.

Example:
    >>> [drawing.id for drawing in draw_litert(read_model(data))]
    ['main']
"""

from __future__ import annotations

from typing import Any

from openneutron.explore.drawing import CPU, NPU, Drawing, Edge, Node, Overlay
from openneutron.litert.check_graph import GRAPH_FIELDS
from openneutron.litert.flexbuffer import read_map
from openneutron.litert.graph import Graph, Model, Operator, Tensor
from openneutron.microcode.graph_op import is_graph_op
from openneutron.report.html.graph_view import module_path

_LONGEST = 200  # characters of an attribute


def draw_litert(model: Model) -> list[Drawing]:
    """Return one drawing per graph that has operators; NeutronGraphs refer to drawings of `neutron_graph_id`."""
    names = [_graph_name(model, at) for at in range(len(model.graphs))]
    return [_draw(graph, names, at) for at, graph in enumerate(model.graphs) if graph.operators or at == 0]


def neutron_graph_id(number: int) -> str:
    """Return the name of the drawing of the NeutronGraph with this number in the main graph."""
    return f"NeutronGraph {number}"


def operator_id(index: int) -> str:
    """Return the node of an operator."""
    return f"operator {index}"


def _graph_name(model: Model, at: int) -> str:
    return "main" if at == 0 else f"{at} {model.graphs[at].name}".strip()


def _draw(graph: Graph, names: list[str], number: int) -> Drawing:
    source = {tensor: (f"input {at}", 0) for at, tensor in enumerate(graph.inputs)}
    nodes = [
        Node(f"input {at}", f"input {graph.tensors[tensor].name}", outputs=(_describe(graph.tensors[tensor]),))
        for at, tensor in enumerate(graph.inputs)
    ]
    compiled = 0
    engines: dict[str, float | str] = {}
    for index, op in enumerate(graph.operators):
        opened: tuple[str, ...] = _called_graphs(op, names)
        if is_graph_op(op) and number == 0:
            opened, compiled = (neutron_graph_id(compiled),), compiled + 1
        nodes.append(_node(graph, index, op, source, opened))
        engines[operator_id(index)] = NPU if is_graph_op(op) else CPU
        source.update({tensor: (operator_id(index), at) for at, tensor in enumerate(op.outputs)})
    for at, tensor in enumerate(graph.outputs):
        edges = (Edge(*source[tensor]),) if tensor in source else ()
        name = f"output {graph.tensors[tensor].name}"
        nodes.append(Node(f"output {at}", name, attributes=_describe(graph.tensors[tensor]), edges=edges))
    overlays = (Overlay("engine", "engine", engines),) if compiled else ()
    return Drawing(names[number], tuple(nodes), {"operators": f"{len(graph.operators):,}"}, overlays)


def _node(graph: Graph, index: int, op: Operator, source: dict[int, tuple[str, int]], opened: tuple[str, ...]) -> Node:
    attributes = {"index": str(index), **_options(op.options), **_options(op.options2)}
    edges = []
    for at, tensor in enumerate(op.inputs):
        if tensor in source:
            edges.append(Edge(*source[tensor], input=at))
        elif tensor >= 0:
            attributes[f"constant {at}"] = _line(graph.tensors[tensor])
    if op.custom_options:
        found = {name: str(value) for name, value in read_map(op.custom_options).items()}
        attributes |= found or {"custom options": f"{len(op.custom_options):,} bytes"}
    place = module_path(graph.tensors[op.outputs[0]].name)[:-1] if op.outputs else ()
    outputs = tuple(_describe(graph.tensors[tensor]) for tensor in op.outputs)
    return Node(operator_id(index), op.label, "/".join(place), attributes, tuple(edges), outputs, opened)


def _options(options: Any) -> dict[str, str]:
    return {name: str(value)[:_LONGEST] for name, value in vars(options).items()} if options is not None else {}


def _called_graphs(op: Operator, names: list[str]) -> tuple[str, ...]:
    numbers = [getattr(options, name, None) for options in (op.options, op.options2) for name in GRAPH_FIELDS]
    return tuple(names[number] for number in numbers if number is not None and 0 < number < len(names))


def _describe(tensor: Tensor) -> dict[str, str]:
    found = {"tensor_name": tensor.name, "tensor_shape": "×".join(map(str, tensor.shape)), "type": str(tensor.dtype)}
    if tensor.quantization is not None and tensor.quantization.scale:
        scales, zeros = tensor.quantization.scale, tensor.quantization.zero_point
        each = f"{len(scales)} scales along axis {tensor.quantization.axis}"
        found["quantization"] = each if len(scales) > 1 else f"scale {scales[0]:g}, zero point {zeros[0]}"
    return found


def _line(tensor: Tensor) -> str:
    found = _describe(tensor)
    return ", ".join(
        filter(None, (found["tensor_name"], found["tensor_shape"], found["type"], found.get("quantization")))
    )
