"""The error for graphs that fit no schedule: how many bytes are missing, which buffers take them, which options help."""

from __future__ import annotations

from openneutron.compiler.l1 import KernelGraph
from openneutron.compiler.l2 import Buffer, TaskList
from openneutron.errors import UnsupportedError
from openneutron.machine.targets import Target
from openneutron.microcode.table import MAX_ENDS, Region

_NAMED = 2  # buffers at the peak that the message names; the others are usually small
_NAME_LENGTH = 48  # characters; converters join the names of all operators that they fused


def _at_peak(tasks: TaskList) -> list[Buffer]:
    """Return the buffers that are alive at the peak, largest first."""
    placed = [b for b in tasks.buffers if b.first >= 0 and b.region in (Region.SCRATCH, Region.PREFETCH, Region.TCM)]
    changes: dict[int, int] = {}
    for b in placed:
        changes[b.first] = changes.get(b.first, 0) + b.size
        changes[b.last + 1] = changes.get(b.last + 1, 0) - b.size
    peak, most, alive = -1, -1, 0
    for position in sorted(changes):
        alive += changes[position]
        if alive > most:
            peak, most = position, alive
    return sorted((b for b in placed if b.first <= peak <= b.last), key=lambda b: -b.size)


class Shortage(UnsupportedError):
    """No schedule fits. `needs` is the least number of bytes found, `ends` of them for inputs and outputs."""

    needs: int = 0
    ends: int = 0


class TooManyEnds(Shortage):
    """More inputs or outputs than an operand can name; cutting the graph helps, as it does with short memory."""


def too_many_ends(inputs: int, outputs: int) -> TooManyEnds:
    """The error for a graph with so many inputs and outputs.

    Example:
        >>> raise too_many_ends(600, 1)
    """
    return TooManyEnds(
        f"it has {inputs} inputs and {outputs} outputs, a NeutronGraph at most {MAX_ENDS} of each",
        hint="join tensors in several steps, or give them as one",
    )


def shortage(graph: KernelGraph, tasks: TaskList, budget: int, optimize: str, target: Target) -> Shortage:
    """The error for a schedule that needs more than `budget` bytes beside inputs and outputs.

    Example:
        >>> raise shortage(graph, smallest.tasks, scratch_budget, "default", target)
    """
    ends = graph.io_bytes
    needs = tasks.held_bytes
    taking = " and ".join(f"{b.size} bytes of {b.name[-_NAME_LENGTH:]}" for b in _at_peak(tasks)[:_NAMED])
    limited = ends + budget < target.sram_bytes  # by --fit, or by what the chip has
    advice = [f"raise --fit by {needs - budget} bytes" if limited else "choose a larger target", "lower the resolution"]
    if tasks.prefetch_bytes:
        advice.append("leave out --fetch-constants-to-sram")
    if optimize == "fast":
        advice.append("use --optimize default, which streams")
    elif optimize == "default":
        advice.append("try --optimize max, whose solver may pack tighter")
    found = Shortage(
        f"the smallest schedule found needs {needs + ends} bytes ({ends} of inputs and outputs, {needs} of scratch and "
        f"prefetch), {needs - budget} more than {'the budget' if limited else target.name + ' has'}",
        hint=(f"at its peak it holds {taking}; " if taking else "") + f"{', '.join(advice[:-1])} or {advice[-1]}",
    )
    found.needs, found.ends = needs + ends, ends
    return found
