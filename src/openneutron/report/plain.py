"""The report as plain text, for pipes and logs: the content of `render`, without its colours and imports.

Example:
    >>> print(report_text(report))
"""

from __future__ import annotations

from collections.abc import Sequence

from openneutron.report import columns
from openneutron.report.facts import Leftovers, costliest, facts, leftovers_of, share, title
from openneutron.report.model import Report

# As many as on a terminal; --json has all of them.
TOP_KERNELS = 10
SHOWN_NAMES = 3
WIDEST = 60  # characters of a cell: names of fused operators have hundreds


def report_text(report: Report, *, everything: bool = False) -> str:
    """Return the summary, the costliest kernels and the nodes on the CPU, one line each; with `everything` all reasons."""
    rows = facts(report)
    wide = max((len(label) for label, _ in rows), default=0)
    lines = [title(report), *(f"  {label.ljust(wide)}  {sentence}" for label, sentence in rows)]
    both = columns.rows(report)
    if both:
        lines += [
            "On the board",
            *_table([("", columns.STOCK, columns.OPEN), *both], right=set()),
            f"  {columns.WHICH}",
        ]
    if report.kernels:
        lines += ["Kernels by cycles", *_kernels(report)]
    left = leftovers_of(report, 0) if everything else leftovers_of(report)
    if left.groups:
        lines += ["Left on the CPU", *_leftovers(left)]
    return "\n".join(lines)


def _kernels(report: Report) -> list[str]:
    rows = [("kernel", "layer", "shape", "calls", "MACs", "cycles", "share", "bound by")]
    for kernel in costliest(report, TOP_KERNELS):
        figures = (f"{kernel.calls:,}", f"{kernel.macs:,}", f"{kernel.cycles:,}", f"{share(kernel, report):.0%}")
        shape = "x".join(map(str, kernel.output_shape))
        rows.append((kernel.kernel, _short(kernel.layer), shape, *figures, kernel.bound_by))
    hidden = len(report.kernels) - TOP_KERNELS
    return [*_table(rows, right={3, 4, 5, 6}), *([f"  and {hidden} more"] if hidden > 0 else [])]


def _leftovers(found: Leftovers) -> list[str]:
    lines = []
    for left in found.groups:
        hint = f" ({left.hint})" if left.hint else ""
        where = f"{left.where(SHOWN_NAMES)}: " if left.names else ""
        lines.append(f"  {left.operator}: {where}{left.reason}{hint}")
    return [*lines, *([f"  {found.more}"] if found.more else [])]


def _short(text: str) -> str:
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


def _table(rows: Sequence[Sequence[str]], right: set[int]) -> list[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(w) if at in right else cell.ljust(w)
            for at, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  " + "  ".join(cells).rstrip())
    return lines
