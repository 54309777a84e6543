"""PruneGraph: removes operators whose results nothing reads, then unused tensors.

Before:  y = f(x); z = g(x); output z
After:   z = g(x); output z
"""

from __future__ import annotations

from openneutron.litert.graph import Graph


def prune_graph(graph: Graph) -> int:
    """Rewrite in place; returns how many operators and tensors went.

    Graph inputs stay even when nothing reads them, as do operators without results, which have side effects.
    """
    needed = set(graph.outputs)
    kept = []
    for op in reversed(graph.operators):
        if not op.outputs or needed.intersection(op.outputs):
            needed.update(tensor for tensor in op.inputs if tensor >= 0)
            kept.append(op)
    count = len(graph.operators) - len(kept)
    graph.operators[:] = reversed(kept)
    named = {tensor for op in graph.operators for tensor in (*op.inputs, *op.outputs, *op.intermediates)}
    named.update(graph.inputs, graph.outputs)
    places = {old: new for new, old in enumerate(sorted(tensor for tensor in named if tensor >= 0))}
    count += len(graph.tensors) - len(places)
    graph.tensors[:] = [graph.tensors[old] for old in places]
    for op in graph.operators:
        op.inputs, op.outputs, op.intermediates = (
            [places.get(tensor, -1) for tensor in tensors] for tensors in (op.inputs, op.outputs, op.intermediates)
        )
    graph.inputs[:] = [places[tensor] for tensor in graph.inputs]
    graph.outputs[:] = [places[tensor] for tensor in graph.outputs]
    return count
