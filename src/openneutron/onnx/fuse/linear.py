"""Fuse a product and a bias into a linear layer.

Before:  m = MatMul(x, W); y = Add(m, b)          After:  y = Linear(x, W, b)
"""

from __future__ import annotations

from typing import Any

from openneutron.onnx.fuse.graph import Graph


def linear(graph: Graph, node: Any) -> bool:
    """Fuse a product with a stored matrix and the addition of a stored vector."""
    if node.op_type != "Add" or node.domain:
        return False
    for product, bias in (tuple(node.input), tuple(node.input)[::-1]):
        matmul = graph.made_by(product, "MatMul")
        weight = graph.shape(matmul.input[1]) if matmul is not None else None
        if weight is not None and len(weight) == 2 and graph.shape(bias) == (weight[1],):
            graph.replace(node, [matmul], "Linear", [*matmul.input, bias])
            return True
    return False
