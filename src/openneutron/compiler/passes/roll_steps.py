"""Roll equal steps into one body that the microcode's LOOP repeats.

Before:  h1 = fc(h0); y1 = add(x[1], h1); h2 = fc(y1); y2 = add(x[2], h2); …      one copy of the body per step
After:   loop over t:  h = fc(y[t-1]); y[t] = add(x[t], h)                         one body; rows are steps

A converter that unrolls a recurrent layer writes the same operators again and again, with the same weights and scales.
Each node of the body becomes one whose rows are the steps. What moves along with the steps (x) is read row by row; what a step
hands to the next (y) is one tensor, of which the body reads a row and writes the next. Steps whose numbers differ stay as
they are, so do nodes in front and behind.
"""

from __future__ import annotations

from openneutron.compiler.l1 import KernelGraph
from openneutron.compiler.passes.rolling import roll
from openneutron.compiler.passes.rolling.body import BY_ROWS, ONE_INPUT
from openneutron.machine.targets import Target


def roll_steps(graph: KernelGraph, target: Target) -> int:
    """Replace runs of equal steps by loops, the longest first; returns how many."""
    return roll(graph, lambda node: node.kernel if node.kernel in BY_ROWS | ONE_INPUT else None, least_size=2)
