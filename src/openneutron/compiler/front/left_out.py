"""Patterns of operators that the user keeps on the CPU: an operator's name or an output tensor's, exact or glob.

Example:
    >>> left_out(graph, graph.operators[0], ("CONV_*",))
    True
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from openneutron.litert.graph import Graph, Model, Operator


def left_out(graph: Graph, op: Operator, patterns: Sequence[str]) -> bool:
    """Return whether some pattern names this operator."""
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in _names(graph, op))


def unmatched_patterns(model: Model, patterns: Sequence[str]) -> tuple[str, ...]:
    """Return the patterns that name no operator of any graph of the model: they have no effect, and are probably misspelt."""
    everything = [(graph, op) for graph in model.graphs for op in graph.operators] if patterns else []
    return tuple(one for one in patterns if not any(left_out(graph, op, (one,)) for graph, op in everything))


def _names(graph: Graph, op: Operator) -> list[str]:
    return [op.code, *(graph.tensors[index].name for index in op.outputs)]
