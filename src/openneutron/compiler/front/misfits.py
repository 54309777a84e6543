"""Misfits: what fits a memory without more ado, and which operators to leave on the CPU when the smallest schedule does not."""

from __future__ import annotations

from openneutron.compiler.front.ingest import Group
from openneutron.litert.graph import Graph
from openneutron.machine.targets import Target
from openneutron.verdict import Reason

_MARGIN = 1.25  # alignment, workspaces and what packing cannot fill
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


def fits_whole(graph: Graph, target: Target) -> bool:
    """Whether the memory holds the graph with every tensor stored whole, so that no schedule needs to be tried.

    Example:
        >>> fits_whole(model.main, targets.load("mcxn94x"))
    """
    last = {t: at for at, op in enumerate(graph.operators) for t in op.inputs}
    ends = {*graph.inputs, *graph.outputs}
    alive = {t for t in ends if t >= 0}
    for at, op in enumerate(graph.operators):
        alive |= {t for t in (*op.inputs, *op.outputs) if t >= 0 and graph.tensors[t].data is None}
        if sum(graph.tensors[t].nbytes for t in alive) * _MARGIN > target.sram_bytes:
            return False
        alive -= {t for t in alive if last.get(t, at) <= at and t not in ends}
    return True


def _sizes(graph: Graph, index: int) -> list[int]:
    op = graph.operators[index]
    named = {t for t in (*op.inputs, *op.outputs) if t >= 0 and graph.tensors[t].data is None}
    return [graph.tensors[t].nbytes for t in named]


def _reason(graph: Graph, index: int, size: int, target: Target) -> Reason:
    name = next((graph.tensors[t].name for t in graph.operators[index].outputs), "")
    message = (
        f"with its neighbours it does not fit: its tensors have {size:,} bytes, {target.name} {target.sram_bytes:,}"
    )
    return Reason("too_large", message, name, _HINT)
