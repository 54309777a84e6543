"""A lower bound on the cycles of a kernel graph, by the machine model itself: what no schedule can beat.

Every node once on its whole tensor, on a machine whose calls cost nothing to start and whose weights load once, wholly
hidden behind the array where it is busy long enough. What remains is array, lanes, bytes moved, and set-up per row.
"""

from __future__ import annotations

from dataclasses import replace

from openneutron.compiler.cost import CostModel
from openneutron.compiler.l1 import KernelGraph
from openneutron.simulator import Machine
from openneutron.targets import Target

_ONE_TILE = (1 << 32) - 1  # pixels; more than any tensor has, so that weights are loaded once


def cycle_bound(graph: KernelGraph, target: Target) -> int:
    """Cycles below which no schedule of this graph can come on this target.

    Example:
        >>> unit.cycles / cycle_bound(unit.graph, target)
    """
    ideal = replace(target, cost=replace(target.cost, call=0, tile_pixels=_ONE_TILE))
    costs = CostModel(graph, target, Machine(ideal))
    return sum(costs.cycles(at, graph.values[node.output].shape[1]) for at, node in enumerate(graph.nodes))
