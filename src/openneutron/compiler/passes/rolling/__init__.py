"""Replaces repeated steps by a loop: `body` describes its body, `find` finds it, `replace` builds it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from openneutron.compiler.l1 import KernelGraph, Node
from openneutron.compiler.passes.rolling.body import LEAST_STEPS


def roll(graph: KernelGraph, kind: Callable[[Node], Any], least_size: int) -> int:
    """Replace repeated steps of at least `least_size` nodes by loops; returns how many loops were made.

    Nodes of one kind may repeat each other; nodes of kind None stay unchanged.
    """
    if sum(kind(node) is not None for node in graph.nodes) < LEAST_STEPS * least_size:
        return 0
    from openneutron.compiler.passes.rolling.find import find
    from openneutron.compiler.passes.rolling.replace import replace_steps

    rolled = 0
    while (body := find(graph, kind, least_size)) is not None:
        replace_steps(graph, body, 1 + max(node.loop for node in graph.nodes))
        rolled += 1
    return rolled
