"""Peak of a stock plan: the tensors that determine its scratch size, and the operator with the most weights."""

from __future__ import annotations

from openneutron.board.answer import Converted
from openneutron.board.flash import operator_weight_bytes
from openneutron.machine.targets import Target
from openneutron.microcode.table import Region

_SHORT = 40  # characters of a tensor's name: those of fused operators run to hundreds


def largest_scratch(made: Converted) -> str:
    """Describe the tensors that are alive when the scratch is fullest, the largest first; "" if there is no scratch.

    Example:
        >>> largest_scratch(made)
        'conv1 (32,768 bytes) with pool1 (8,192 bytes)'
    """
    best: list[tuple[int, str]] = []
    if not made.by.scratch:
        return ""
    for plan in made.plans:
        buffers = [b for b in plan.tasks.buffers if b.region is Region.SCRATCH and b.first >= 0]
        for moment in {b.first for b in buffers}:
            alive = sorted(((b.size, b.name) for b in buffers if b.first <= moment <= b.last), reverse=True)
            if sum(size for size, _ in alive) > sum(size for size, _ in best):
                best = alive
    return " with ".join(f"{short(name)} ({size:,} bytes)" for size, name in best)


def largest_weights(made: Converted, target: Target) -> str:
    """Describe the operator with the most weights; "" if there are none."""
    graph = made.graph
    sizes = [
        (
            operator_weight_bytes(graph, graph.operators[index], target, made.by),
            graph.tensors[graph.operators[index].outputs[0]].name,
        )
        for group in made.groups
        for index in group
    ]
    size, name = max(sizes, default=(0, ""))
    return f"weights of {short(name)} ({size:,} bytes)" if size else ""


def short(name: str) -> str:
    """Shorten a tensor's name for a table."""
    return name if len(name) <= _SHORT else f"{name[: _SHORT - 1]}…"
