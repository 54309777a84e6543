"""Cycles of the layers of a compiled program, and of one program against another.

Example:
    >>> cycles_ratio(program.report, other.report)
    1.07
"""

from __future__ import annotations

from openneutron.report.model import Report


def costs_of(report: Report) -> dict[str, float]:
    """Return by the name of each node what 16 bits add to the cycles, as a share of all.

    A kernel takes about twice its cycles with them.
    """
    return {name: cycles / max(1, report.totals.cycles) for name, cycles in cycles_of_nodes(report).items()}


def cycles_of_nodes(report: Report) -> dict[str, float]:
    """Return the cycles of the kernels that compute each node, by its name."""
    handles: dict[int, list[str]] = {}
    for node in report.nodes:
        if node.delegated and node.origin:
            handles.setdefault(node.debug_handle, []).append(node.origin)
    operators = {one.index: one for one in report.operators}
    found: dict[str, float] = {}
    for kernel in report.kernels:
        known = (operators[index] for index in kernel.operators if index in operators)
        names = {name for one in known for handle in one.debug_handles for name in handles.get(handle, ())}
        for name in names:
            found[name] = found.get(name, 0.0) + kernel.cycles
    return found


def cycles_ratio(report: Report, other: Report) -> float:
    """Return how many times the cycles of another program one takes; operators that went to the CPU count by time."""
    ratio = report.totals.cycles / max(1, other.totals.cycles)
    if report.whole.timed and other.whole.timed and other.whole.milliseconds:
        return max(ratio, report.whole.milliseconds / other.whole.milliseconds)
    return ratio if report.whole.cpu_operators <= other.whole.cpu_operators else float("inf")
