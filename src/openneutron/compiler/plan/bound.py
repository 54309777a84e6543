"""A lower bound on the cycles of a kernel graph, by the machine model itself: what no schedule can beat.

Every node once on all rows that are read, on a machine whose calls cost nothing to start and whose weights load once, wholly
hidden behind the array where it is busy long enough. What remains is array, lanes, bytes moved, and set-up per row.
"""

from __future__ import annotations

from dataclasses import replace

from openneutron.compiler.cost import CostModel, home
from openneutron.compiler.l1 import KernelGraph
from openneutron.machine.pricing import Machine
from openneutron.machine.targets import Target

_ONE_TILE = (1 << 32) - 1  # pixels; more than any tensor has, so that weights are loaded once


def _rows_read(graph: KernelGraph) -> list[int]:
    """For each node how many rows of its output, from the top, anyone reads: a stream never makes those below."""
    read = {root: graph.values[root].shape[1] for value in graph.outputs for root in (value, graph.root(value))}
    found = [0] * len(graph.nodes)
    for at in range(len(graph.nodes) - 1, -1, -1):
        node = graph.nodes[at]
        output = graph.values[node.output]
        found[at] = read.get(graph.root(node.output), output.shape[1]) if graph.in_row(node.output) else output.shape[1]
        for position, operand in enumerate(node.operands):
            if isinstance(operand, int) and operand != node.output:
                value = graph.values[operand]
                demand = (node.demand or {}).get(position)
                rows = value.shape[1] if demand is None else demand.rows(0, found[at], value.shape[1])[1]
                read[operand] = max(read.get(operand, 0), rows)
                if value.alias is not None:
                    read[value.alias.root] = graph.values[value.alias.root].shape[1]
    return found


def cycle_bound(graph: KernelGraph, target: Target) -> int:
    """Cycles below which no schedule of this graph can come on this target.

    Example:
        >>> unit.cycles / cycle_bound(unit.graph, target)
    """
    ideal = replace(target, cost=replace(target.cost, call=0, tile_pixels=_ONE_TILE))
    costs = CostModel(graph, target, Machine(ideal), home(target))
    return sum(costs.cycles(at, rows) for at, rows in enumerate(_rows_read(graph)))
