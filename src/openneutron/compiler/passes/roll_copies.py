"""Replace copies of one row after another by one loop.

Before:  y[0] = copy(a[0]); y[1] = copy(a[1]); …      what is left of stacking the results of rolled steps
After:   loop over t:  y[t] = copy(a[t])
"""

from __future__ import annotations

from openneutron.compiler.l1 import KernelGraph, Node
from openneutron.compiler.passes.rolling import roll
from openneutron.machine.targets import Target


def roll_copies(graph: KernelGraph, target: Target) -> int:
    """Replace runs of copies that move along both of their tensors by loops; return the number of loops."""

    def tensors(node: Node) -> tuple[int, ...] | None:
        """Return the roots of the copied tensors: only copies between the same tensors form a loop.

        Both directions of a layer may be stacked one after the other; they become two loops.
        """
        return tuple(map(graph.root, (*node.inputs(), node.output))) if node.kernel == "slice" else None

    return roll(graph, tensors, least_size=1)
