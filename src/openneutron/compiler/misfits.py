"""Misfits: which operators to leave on the CPU when a group's smallest schedule is larger than the target's memory."""

from __future__ import annotations

from openneutron.compiler.ingest import Group
from openneutron.litert.graph import Graph
from openneutron.targets import Target
from openneutron.verdict import Reason

_HINT = "lower the resolution or the batch, or choose a larger target"


def misfits(graph: Graph, group: Group, target: Target, attempt: int) -> dict[int, Reason]:
    """Operators of the group with the reason for leaving them; at least one.

    Those with a tensor larger than the memory go first, all at once: they fit only inside a cascade, and this group has
    none. Else those with the most bytes, twice as many at each attempt so that the search ends soon.

    Example:
        >>> misfits(graph, group, target, attempt=0)
    """
    sizes = {index: _sizes(graph, index) for index in group.operators}
    chosen = [index for index, bytes_of in sizes.items() if max(bytes_of, default=0) > target.sram_bytes]
    if not chosen:
        ordered = sorted(sizes, key=lambda index: -sum(sizes[index]))
        chosen = ordered[: 1 << attempt]
    return {index: _reason(graph, index, sum(sizes[index]), target) for index in chosen}


def _sizes(graph: Graph, index: int) -> list[int]:
    op = graph.operators[index]
    named = {t for t in (*op.inputs, *op.outputs) if t >= 0 and graph.tensors[t].data is None}
    return [graph.tensors[t].nbytes for t in named]


def _reason(graph: Graph, index: int, size: int, target: Target) -> Reason:
    name = graph.tensors[graph.operators[index].outputs[0]].name
    message = (
        f"with its neighbours it does not fit: its tensors have {size:,} bytes, {target.name} {target.sram_bytes:,}"
    )
    return Reason("too_large", message, name, _HINT)
