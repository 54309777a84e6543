"""Layer normalization, as exporters wrote it before opset 17.

Before:  m = ReduceMean(x); d = Sub(x, m); v = ReduceMean(Pow(d, 2)); n = Div(d, Sqrt(Add(v, ε))); y = Add(Mul(n, w), b)
After:   y = LayerNorm(x, w, b)
"""

from __future__ import annotations

from typing import Any

from openneutron.extras import need
from openneutron.onnx.fuse.graph import Graph
from openneutron.onnx.ops import OWN

_NAME = "LayerNorm"


def layer_norm(graph: Graph, node: Any) -> bool:
    """The division first; then a product and a sum with stored vectors join it."""
    if node.domain:
        return False
    return _plain(graph, node) if node.op_type == "Div" else _affine(graph, node)


def _plain(graph: Graph, node: Any) -> bool:
    centred, root = graph.maker.get(node.input[0]), graph.made_by(node.input[1], "Sqrt")
    if centred is None or centred.op_type != "Sub" or centred.domain or root is None:
        return False
    moved = graph.made_by(root.input[0], "Add")
    if moved is None:
        return False
    epsilon = next((number for one in moved.input if (number := graph.number(one)) is not None), None)
    mean_of_squares = next(
        (made for one in moved.input if (made := graph.made_by(one, "ReduceMean")) is not None), None
    )
    mean = graph.made_by(centred.input[1], "ReduceMean")
    if epsilon is None or mean_of_squares is None or mean is None or mean.input[0] != centred.input[0]:
        return False
    square = graph.maker.get(mean_of_squares.input[0])
    if square is None or not _squares(graph, square, node.input[0]):
        return False
    axes = _axes(graph, mean)
    inside = [mean, centred, square, mean_of_squares, moved, root]
    if axes is None or axes != _axes(graph, mean_of_squares) or not _keeps(mean, mean_of_squares):
        return False
    if not graph.read_only_by(node.input[0], [square, node]) or not graph.read_only_by(square.output[0], inside):
        return False
    graph.replace(node, inside, _NAME, [centred.input[0]])
    onnx = need("onnx")
    node.attribute.extend([onnx.helper.make_attribute("axes", axes), onnx.helper.make_attribute("epsilon", epsilon)])
    return True


def _squares(graph: Graph, node: Any, name: str) -> bool:
    if node.op_type == "Pow" and not node.domain:
        return bool(node.input[0] == name and graph.number(node.input[1]) == 2.0)
    return bool(node.op_type == "Mul" and not node.domain and list(node.input) == [name, name])


def _axes(graph: Graph, mean: Any) -> list[int] | None:
    """What a mean is taken over: an attribute up to opset 17, an input since."""
    if len(mean.input) > 1:
        data = graph.constant(mean.input[1])
        return None if data is None else [int(one) for one in data.reshape(-1)]
    return next((list(one.ints) for one in mean.attribute if one.name == "axes"), None)


def _keeps(*means: Any) -> bool:
    """Whether the reduced dimensions stay, as ones."""
    return all(one.i for mean in means for one in mean.attribute if one.name == "keepdims")


def _affine(graph: Graph, node: Any) -> bool:
    if node.op_type not in ("Mul", "Add"):
        return False
    for source, vector in (tuple(node.input), tuple(node.input)[::-1]):
        norm = graph.maker.get(source)
        shape = graph.shape(vector)
        if norm is None or (norm.domain, norm.op_type) != (OWN, _NAME) or not graph.read_only_by(source, [node]):
            continue
        if shape is None or len(norm.input) != (1 if node.op_type == "Mul" else 2):
            continue
        attributes = list(norm.attribute)
        graph.replace(node, [norm], _NAME, [*norm.input, vector])
        node.attribute.extend(attributes)
        return True
    return False
