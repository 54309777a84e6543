"""Check indices before anything else runs, so that a run with a bad one ends before it changed a state.

Before:  k = update_slice(cache, row, check(position)); …; e = gather(table, check(token))
After:   p = check(position); t = check(token); k = update_slice(cache, row, p); …; e = gather(table, t)
"""

from __future__ import annotations

from openneutron.compiler.kernels import check_indices
from openneutron.compiler.l1 import KernelGraph
from openneutron.machine.targets import Target


def check_indices_first(graph: KernelGraph, target: Target) -> int:
    """Move checks, and what computes their indices, to the front; returns how many nodes moved."""
    writers: dict[int, list[int]] = {}
    for at, node in enumerate(graph.nodes):
        writers.setdefault(graph.root(node.output), []).append(at)
    waiting = [at for at, node in enumerate(graph.nodes) if node.kernel == check_indices.ABI.name]
    first: set[int] = set()
    while waiting:
        at = waiting.pop()
        if at in first:
            continue
        first.add(at)
        for value in graph.nodes[at].inputs():
            waiting += [made for made in writers.get(graph.root(value), ()) if made < at]
    nodes = graph.nodes
    graph.nodes = [nodes[at] for at in sorted(first)] + [node for at, node in enumerate(nodes) if at not in first]
    return len(first)
