"""Roll copies of one row after another into one loop.

Before:  y[0] = copy(a[0]); y[1] = copy(a[1]); …      what is left of stacking the results of rolled steps
After:   loop over t:  y[t] = copy(a[t])
"""

from __future__ import annotations

from openneutron.compiler.l1 import KernelGraph
from openneutron.compiler.passes.rolling import roll
from openneutron.machine.targets import Target


def roll_copies(graph: KernelGraph, target: Target) -> int:
    """Replace runs of copies that move along both of their tensors by loops; returns how many."""
    return roll(graph, lambda node: node.kernel == "slice", least_size=1)
