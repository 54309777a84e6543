"""Before:  s = HardSigmoid(x); y = Mul(x, s)                                       After:  y = HardSwish(x)
Before:  a = Add(x, 3); c = Clip(a, 0, 6); m = Mul(x, c); y = Div(m, 6)           After:  y = HardSwish(x)
"""

from __future__ import annotations

from typing import Any

from openneutron.onnx.fuse.graph import Graph


def hard_swish(graph: Graph, node: Any) -> bool:
    """A value times its own hard sigmoid."""
    if node.domain or node.op_type not in ("Mul", "Div"):
        return False
    return (node.op_type == "Mul" and _of_hard_sigmoid(graph, node)) or _of_clip(graph, node)


def _of_hard_sigmoid(graph: Graph, node: Any) -> bool:
    for x, gate in (tuple(node.input), tuple(node.input)[::-1]):
        hard = graph.made_by(gate, "HardSigmoid")
        if hard is not None and hard.input[0] == x:
            numbers = {one.name: one.f for one in hard.attribute}
            if abs(numbers.get("alpha", 0.2) - 1 / 6) < 1e-6 and numbers.get("beta", 0.5) == 0.5:
                graph.replace(node, [hard], "HardSwish", [x])
                return True
    return False


def _of_clip(graph: Graph, node: Any) -> bool:
    """x · clip(x + 3, 0, 6) / 6, the division also as a product with 1/6."""
    parts = [one for one in node.input if graph.number(one) is None]
    numbers = [number for one in node.input if (number := graph.number(one)) is not None]
    if len(parts) != 1 or len(numbers) != 1:
        return False
    factor = 1 / numbers[0] if node.op_type == "Div" and numbers[0] else numbers[0]
    product = graph.made_by(parts[0], "Mul")
    if abs(factor - 1 / 6) > 1e-6 or product is None or (node.op_type == "Div" and node.input[0] != parts[0]):
        return False
    for x, gate in (tuple(product.input), tuple(product.input)[::-1]):
        clip = graph.made_by(gate, "Clip")
        add = graph.made_by(clip.input[0], "Add") if clip is not None else None
        if add is None or x not in add.input or 3.0 not in [graph.number(one) for one in add.input]:
            continue
        if _bounds(graph, clip) == (0.0, 6.0):
            graph.replace(node, [product, clip, add], "HardSwish", [x])
            return True
    return False


def _bounds(graph: Graph, clip: Any) -> tuple[float | None, ...]:
    """Both bounds, which are attributes up to opset 10 and inputs since."""
    numbers = {one.name: float(one.f) for one in clip.attribute}
    if len(clip.input) == 3:
        return graph.number(clip.input[1]), graph.number(clip.input[2])
    return numbers.get("min"), numbers.get("max")
