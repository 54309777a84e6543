"""Before:  x · (1 + Erf(x / √2)) / 2                After:  y = Gelu(x)"""

from __future__ import annotations

import math
from typing import Any

from openneutron.onnx.fuse.graph import Graph


def _factors(graph: Graph, name: str) -> tuple[list[str], float, list[Any]]:
    """A value as a product: what is computed, the constant factor, and the nodes that multiply."""
    node = graph.made_by(name, "Mul")
    if node is None:
        return [name], 1.0, []
    parts: list[str] = []
    factor, nodes = 1.0, [node]
    for one in node.input:
        number = graph.number(one)
        if number is not None:
            factor *= number
        else:
            inner, more, deeper = _factors(graph, one)
            parts, factor, nodes = parts + inner, factor * more, nodes + deeper
    return parts, factor, nodes


def gelu(graph: Graph, node: Any) -> bool:
    """x · ½ · (1 + erf(x / √2)), in whatever order the factors were multiplied."""
    if node.op_type != "Mul" or node.domain:
        return False
    parts: list[str] = []
    nodes: list[Any] = []
    factor = 1.0
    for one in node.input:
        number = graph.number(one)
        if number is not None:
            factor *= number
            continue
        inner, more, deeper = _factors(graph, one)
        parts, factor, nodes = parts + inner, factor * more, nodes + deeper
    if len(parts) != 2 or not math.isclose(factor, 0.5, rel_tol=1e-5):
        return False
    for x, other in (tuple(parts), tuple(parts)[::-1]):
        add = graph.made_by(other, "Add")
        if add is None:
            continue
        erf = next((graph.made_by(one, "Erf") for one in add.input if graph.made_by(one, "Erf") is not None), None)
        one = next((graph.number(name) for name in add.input if graph.number(name) is not None), None)
        if erf is None or one != 1.0:
            continue
        scaled = graph.maker.get(erf.input[0])
        if scaled is None or scaled.op_type not in ("Div", "Mul") or scaled.input[0] != x:
            continue
        number = graph.number(scaled.input[1])
        wanted = math.sqrt(2) if scaled.op_type == "Div" else math.sqrt(0.5)
        if number is not None and math.isclose(number, wanted, rel_tol=1e-4):
            gone = [*nodes, add, erf]
            if graph.made_by(erf.input[0], scaled.op_type) is not None:
                gone.append(scaled)
            graph.replace(node, gone, "Gelu", [x])
            return True
    return False
