"""Before:  s = Sigmoid(x); y = Mul(x, s)            After:  y = Silu(x)

Some exporters multiply by a factor of 1 inside the sigmoid.
"""

from __future__ import annotations

from typing import Any

from openneutron.onnx.fuse.graph import Graph


def silu(graph: Graph, node: Any) -> bool:
    """A value times its own sigmoid."""
    if node.op_type != "Mul" or node.domain:
        return False
    for x, gate in (tuple(node.input), tuple(node.input)[::-1]):
        sigmoid = graph.made_by(gate, "Sigmoid")
        if sigmoid is None:
            continue
        inner = graph.made_by(sigmoid.input[0], "Mul")
        if sigmoid.input[0] == x:
            graph.replace(node, [sigmoid], "Silu", [x])
            return True
        if inner is not None and x in inner.input and 1.0 in [graph.number(one) for one in inner.input]:
            graph.replace(node, [sigmoid, inner], "Silu", [x])
            return True
    return False
