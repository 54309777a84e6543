"""Remove tensors that nothing uses any more, for example weights of operators that were replaced."""

from __future__ import annotations

from dataclasses import replace

from openneutron.litert.graph import Model


def drop_tensors(model: Model) -> int:
    """Rewrite the main graph in place; returns how many tensors went. Operators stay, whatever they are for.

    Example:
        >>> model.main.operators = [neutron_graph]
        >>> drop_tensors(model)
        12
    """
    graph = model.main
    named = {*graph.inputs, *graph.outputs}
    for op in graph.operators:
        named.update(op.inputs, op.outputs, op.intermediates)
    signatures = [one for one in model.signatures if one.graph == 0]
    named.update(index for one in signatures for _, index in (*one.inputs, *one.outputs))
    places = {old: new for new, old in enumerate(sorted(index for index in named if index >= 0))}
    dropped = len(graph.tensors) - len(places)
    places[-1] = -1  # an absent optional input
    graph.tensors = [graph.tensors[old] for old in places if old >= 0]
    graph.operators = [
        replace(
            op,
            inputs=[places[index] for index in op.inputs],
            outputs=[places[index] for index in op.outputs],
            intermediates=[places[index] for index in op.intermediates],
        )
        for op in graph.operators
    ]
    graph.inputs = [places[index] for index in graph.inputs]
    graph.outputs = [places[index] for index in graph.outputs]
    model.signatures = [
        one._replace(
            inputs=tuple((name, places[index]) for name, index in one.inputs),
            outputs=tuple((name, places[index]) for name, index in one.outputs),
        )
        if one.graph == 0
        else one
        for one in model.signatures
    ]
    return dropped
