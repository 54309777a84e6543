"""Decides whether a graph certainly fits the memory, and words the reason for an operator that fits in no schedule."""

from __future__ import annotations

from openneutron.litert.graph import Graph
from openneutron.machine.targets import Target
from openneutron.microcode.table import MAX_ENDS
from openneutron.verdict import Reason

_MARGIN = 1.25  # for alignment, workspaces and fragmentation
_HINT = "lower the resolution or the batch, or choose a larger target"
_NAMED = 3  # tensors that are named; a wide concatenation has dozens


def explain_too_large(graph: Graph, index: int, needs: int, ends: int, target: Target) -> Reason:
    """Return why an operator stays on the CPU: it alone needs `needs` bytes, `ends` of them for inputs and outputs.

    Example:
        >>> explain_too_large(graph, 4, 1_310_720, 1_310_720, targets.load("mcxn94x")).message
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
    if needs > ends:
        parts.append(f"beside them {needs - ends:,}")
    message = f"alone it needs {needs:,} bytes ({', '.join(parts)}), {target.name} has {target.sram_bytes:,}"
    return Reason("too_large", message, next((graph.tensors[t].name for t in op.outputs), ""), _HINT)


def has_too_many_ends(graph: Graph) -> bool:
    """Return whether the graph has more inputs or outputs than one NeutronGraph can have.

    Example:
        >>> has_too_many_ends(model.main)
        False
    """
    return max(len(graph.inputs), len(graph.outputs)) > MAX_ENDS


def fits_whole(graph: Graph, target: Target) -> bool:
    """Return whether the graph fits with every tensor stored whole, so that no schedule needs to be tried.

    Example:
        >>> fits_whole(model.main, targets.load("mcxn94x"))
    """
    if has_too_many_ends(graph):
        return False
    last = {t: at for at, op in enumerate(graph.operators) for t in op.inputs}
    ends = {*graph.inputs, *graph.outputs}
    alive = {t for t in ends if t >= 0}
    for at, op in enumerate(graph.operators):
        alive |= {t for t in (*op.inputs, *op.outputs) if t >= 0 and graph.tensors[t].data is None}
        if sum(graph.tensors[t].nbytes for t in alive) * _MARGIN > target.sram_bytes:
            return False
        alive -= {t for t in alive if last.get(t, at) <= at and t not in ends}
    return True
