"""Names of what computes the outputs of a graph.

Example:
    >>> last_names(model.main)
    {'scores', 'Conv2D_7'}
"""

from __future__ import annotations

from typing import Final

from openneutron.litert.graph import Graph

# Between the layer that computes an output and the output.
_LAST: Final = frozenset({"RESHAPE", "CONCATENATION", "SQUEEZE", "TRANSPOSE", "LOGISTIC", "DEQUANTIZE", "QUANTIZE"})


def last_names(graph: Graph) -> set[str]:
    """Return the names of the tensors that layers before the outputs write, and of what only reorders these."""
    producers = graph.producers()
    found: set[str] = set()
    pending = list(graph.outputs)
    while pending:
        at = pending.pop()
        if at not in producers or graph.tensors[at].name in found:
            continue
        op = graph.operators[producers[at]]
        found.add(graph.tensors[at].name)
        if op.code in _LAST:
            pending += [one for one in op.inputs if one >= 0]
    return found
