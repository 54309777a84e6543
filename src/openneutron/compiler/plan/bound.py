"""A lower bound on the cycles of a kernel graph, by the machine model itself: what no schedule can beat.

Proof. The array runs one call at a time; a call makes whole rows of one node, and its price depends on how many, not on which
(`nm_encoded_call_cost`). Whole tensors, stripes, segments, parts of an iteration, either direction: whatever the schedule, its
calls of a node have r1, r2, ... rows that together are at least those that are read. So a node costs no less than the cheapest
such list, which dynamic programming finds:

    least(0) = 0,  least(n) = min over r = 1 ... n of price(r) + least(n - r)

A call of more than n rows is no cheaper than one of n, since no part of a price falls with the rows, so r stops there. The sum
over the nodes leaves out only copies, and that values may lie where they are dearer to reach; weights are loaded as they are
stored, which no copy of them makes cheaper. What a pass makes of a node, such
as pixels merged, is part of the graph.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from openneutron.compiler.cost import CostModel, home
from openneutron.compiler.l1 import KernelGraph
from openneutron.machine.targets import Target


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


def _least(costs: CostModel, node: int, rows: int) -> int:
    """Fewest cycles of calls that make so many rows of a node; see the module's text."""
    prices = np.array([costs.cycles(node, count) for count in range(1, rows + 1)], np.int64)
    least = np.zeros(rows + 1, np.int64)
    for count in range(1, rows + 1):
        least[count] = (prices[:count] + least[count - 1 :: -1]).min()
    return int(least[rows])


def cycle_bound(graph: KernelGraph, target: Target, stored: Mapping[int, int] | None = None) -> int:
    """Cycles below which no schedule of this graph can come on this target, its constants stored as `Constants.stored` says.

    Example:
        >>> unit.cycles / cycle_bound(unit.graph, target, unit.constants.stored())
    """
    costs = CostModel(graph, target, local=home(target), stored=stored or {})
    return sum(_least(costs, at, rows) for at, rows in enumerate(_rows_read(graph)))
