"""Remove graphs that nothing calls any more, for example decompositions of composites that were replaced."""

from __future__ import annotations

import copy
from dataclasses import replace

from openneutron.litert.check_graph import GRAPH_FIELDS
from openneutron.litert.graph import Graph, Model, Operator


def drop_graphs(model: Model) -> int:
    """Renumber the rest in place; returns how many graphs went. The first and those that signatures name stay.

    Example:
        >>> model.main.operators = [neutron_graph]
        >>> drop_graphs(model)
        1
    """
    waiting = [0, *(signature.graph for signature in model.signatures)]
    needed: set[int] = set()
    while waiting:
        number = waiting.pop()
        if number not in needed:
            needed.add(number)
            waiting += _called_graphs(model.graphs[number])
    places = {old: new for new, old in enumerate(sorted(needed))}
    dropped = len(model.graphs) - len(places)
    if not dropped:
        return 0
    model.graphs = [model.graphs[old] for old in places]
    for graph in model.graphs:
        graph.operators = [_renumber(op, places) for op in graph.operators]
    model.signatures = [one._replace(graph=places[one.graph]) for one in model.signatures]
    return dropped


def _called_graphs(graph: Graph) -> list[int]:
    found = []
    for op in graph.operators:
        for options in (op.options, op.options2):
            found += [number for field in GRAPH_FIELDS if (number := getattr(options, field, None)) is not None]
    return found


def _renumber(op: Operator, places: dict[int, int]) -> Operator:
    made = []
    for options in (op.options, op.options2):
        fields = [field for field in GRAPH_FIELDS if getattr(options, field, None) is not None]
        changed = copy.copy(options) if fields else options
        for field in fields:
            setattr(changed, field, places[getattr(options, field)])
        made.append(changed)
    return op if made == [op.options, op.options2] else replace(op, options=made[0], options2=made[1])
