"""Drop nodes whose output nobody reads.

Before:  a = conv(x); b = lut(a) (unread); return a
After:   a = conv(x); return a
"""

from __future__ import annotations

from openneutron.compiler.l1 import KernelGraph
from openneutron.machine.targets import Target


def drop_unused(graph: KernelGraph, target: Target) -> int:
    """Remove dead nodes, last first, so that whole dead chains go in one walk."""
    needed = {graph.root(value) for value in graph.outputs}
    kept = []
    for node in reversed(graph.nodes):
        if graph.root(node.output) in needed:
            kept.append(node)
            needed.update(graph.root(value) for value in node.inputs())
    dropped = len(graph.nodes) - len(kept)
    graph.nodes = kept[::-1]
    return dropped
