"""Replace repeated steps by one loop body; the row index counts steps.

Before:  h1 = fc(h0); y1 = add(x[1], h1); h2 = fc(y1); y2 = add(x[2], h2); …      one copy of the body per step
After:   loop over t:  h = fc(y[t-1]); y[t] = add(x[t], h)                         one body; rows are steps

A converter that unrolls a recurrent layer writes the same operators for every step, with the same weights and scales. Each node
of the body becomes one node whose rows are the steps. Inputs that advance with the steps (x) are read row by row. A value that
a step passes to the next (y) is one tensor, of which the body reads a row and writes the next one. Steps with different scales
or weights stay unchanged, as do the nodes before and after them.
"""

from __future__ import annotations

from openneutron.compiler.l1 import KernelGraph
from openneutron.compiler.passes.rolling import roll
from openneutron.compiler.passes.rolling.body import BY_ROWS, ONE_INPUT
from openneutron.machine.targets import Target


def roll_steps(graph: KernelGraph, target: Target) -> int:
    """Replace runs of equal steps by loops, the longest first; returns how many."""
    return roll(graph, lambda node: node.kernel if node.kernel in BY_ROWS | ONE_INPUT else None, least_size=2)
