"""Rolling equal steps into one body of a loop: what a body is, how it is found, what takes the steps' place."""

from __future__ import annotations

from collections.abc import Callable

from openneutron.compiler.l1 import KernelGraph, Node
from openneutron.compiler.passes.rolling.find import find
from openneutron.compiler.passes.rolling.replace import replace_steps


def roll(graph: KernelGraph, fits: Callable[[Node], bool], least_size: int) -> int:
    """Roll runs of nodes that fit, in steps of at least `least_size`; returns how many loops were made."""
    rolled = 0
    while (body := find(graph, fits, least_size)) is not None:
        replace_steps(graph, body, 1 + max(node.loop for node in graph.nodes))
        rolled += 1
    return rolled
