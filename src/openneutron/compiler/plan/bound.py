"""A lower bound on the cycles of a kernel graph: no schedule is faster by the machine model.

Proof. The array runs one call at a time; a call makes whole rows of one node, and its price depends on how many, not on which
(`nm_encoded_call_cost`). Whole tensors, stripes, segments, parts of an iteration, either direction: whatever the schedule, its
calls of a node have r1, r2, ... rows that together are at least those that are read. So a node costs no less than the cheapest
such list, which dynamic programming finds:

    least(0) = 0,  least(n) = min over r = 1 ... n of price(r) + least(n - r)

A call of more than n rows is no cheaper than one of n, since no part of a price falls with the rows, so r stops there. The sum
over the nodes omits copies, and the higher cost of values in slower memory. Weights are priced in the bytes they are stored in,
and a copy of them is never cheaper to load. Changes by passes, such as merged pixels, are part of the graph.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from openneutron.compiler.cost import CostModel, home_region
from openneutron.compiler.l1 import KernelGraph
from openneutron.machine.targets import Target


def _rows_read(graph: KernelGraph) -> list[int]:
    """Return for each node how many rows of its output are read, from the top: a stream never makes the rows below."""
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
    """Return the fewest cycles of calls that together make this many rows of a node; see the proof above."""
    prices = np.array([costs.cycles(node, count) for count in range(1, rows + 1)], np.int64)
    least = np.zeros(rows + 1, np.int64)
    for count in range(1, rows + 1):
        least[count] = (prices[:count] + least[count - 1 :: -1]).min()
    return int(least[rows])


def cycle_bound(graph: KernelGraph, target: Target, stored: Mapping[int, int] | None = None) -> int:
    """Return a number of cycles that no schedule of the graph can beat on the target.

    `stored` are the bytes that constants are coded in, from `Constants.coded_sizes`.

    Example:
        >>> unit.cycles / cycle_bound(unit.graph, target, unit.constants.coded_sizes())
    """
    costs = CostModel(graph, target, local=home_region(target), stored=stored or {})
    return sum(_least(costs, at, rows) for at, rows in enumerate(_rows_read(graph)))
