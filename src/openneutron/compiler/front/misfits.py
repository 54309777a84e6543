"""Misfits: what fits a memory without more ado, and what to say of an operator that fits it in no schedule."""

from __future__ import annotations

from openneutron.compiler.plan.shortage import Shortage
from openneutron.litert.graph import Graph
from openneutron.machine.targets import Target
from openneutron.verdict import Reason

_MARGIN = 1.25  # alignment, workspaces and what packing cannot fill
_HINT = "lower the resolution or the batch, or choose a larger target"
_NAMED = 3  # tensors that are named; a wide concatenation has dozens


def misfit(graph: Graph, index: int, error: Shortage, target: Target, *, alone: bool = True) -> Reason:
    """Why an operator stays on the CPU: what it needs alone, by which tensors, and what there is.

    Example:
        >>> misfit(graph, 4, error, targets.load("mcxn94x")).message
        'alone it needs 1,310,720 bytes (wide 655,360, last 655,360), mcxn94x has 524,288'
    """
    op = graph.operators[index]
    sizes = {
        graph.tensors[t].name: graph.tensors[t].nbytes
        for t in (*op.inputs, *op.outputs)
        if t >= 0 and graph.tensors[t].data is None
    }
    largest = sorted(sizes.items(), key=lambda item: -item[1])
    parts = [f"{name} {size:,}" for name, size in largest[:_NAMED]]
    parts += [f"{len(largest) - _NAMED} more"] if len(largest) > _NAMED else []
    if error.needs > error.ends:
        parts.append(f"beside them {error.needs - error.ends:,}")
    if not alone:
        # A variable ties it to others: the figures are those of all of them.
        return Reason("too_large", error.message, next((graph.tensors[t].name for t in op.outputs), ""), error.hint)
    message = f"alone it needs {error.needs:,} bytes ({', '.join(parts)}), {target.name} has {target.sram_bytes:,}"
    return Reason("too_large", message, next((graph.tensors[t].name for t in op.outputs), ""), _HINT)


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
