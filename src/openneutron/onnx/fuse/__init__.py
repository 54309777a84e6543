"""Fusion: restores operators that exporters split, as they would be in a model exported from PyTorch.

One file per pattern: a function of the graph and of the last node of the pattern, which it rewrites in place. GELU, layer
normalization and other written-out functions need no pattern here: the quantizer's passes recognise them in models of any
front end.
"""

from __future__ import annotations

from typing import Any

from openneutron.onnx.fuse.affine import affine
from openneutron.onnx.fuse.graph import Graph
from openneutron.onnx.fuse.linear import linear

PATTERNS = (linear, affine)


def fuse(graph: Any) -> int:
    """Rewrite a graph in place; returns how many patterns were found.

    Example:
        >>> fuse(model.graph)
        3
    """
    found = Graph(graph)
    count = 0
    for node in list(graph.node):
        if id(node) not in found.gone and any(pattern(found, node) for pattern in PATTERNS):
            count += 1
    if found.gone:
        kept = [type(node).FromString(node.SerializeToString()) for node in graph.node if id(node) not in found.gone]
        del graph.node[:]
        graph.node.extend(kept)
    return count
