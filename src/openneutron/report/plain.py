"""The report as plain text, for pipes and logs: what `render` shows on a terminal, without its colours and its imports.

Example:
    >>> print(report_text(report))
"""

from __future__ import annotations

from collections.abc import Sequence

from openneutron.report import columns
from openneutron.report.facts import costliest, facts, left_on_cpu, share, title
from openneutron.report.model import Report

# As many as on a terminal; --json has all of them.
TOP_KERNELS = 10
SHOWN_NAMES = 3
WIDEST = 60  # characters of a cell: names of fused operators run to hundreds


def report_text(report: Report) -> str:
    """Summary, the costliest kernels and what stayed on the CPU, one line each."""
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
    if left_on_cpu(report):
        lines += ["Left on the CPU", *_leftovers(report)]
    return "\n".join(lines)


def _kernels(report: Report) -> list[str]:
    rows = [("kernel", "output", "shape", "calls", "MACs", "cycles", "share", "bound by")]
    for kernel in costliest(report, TOP_KERNELS):
        figures = (f"{kernel.calls:,}", f"{kernel.macs:,}", f"{kernel.cycles:,}", f"{share(kernel, report):.0%}")
        shape = "x".join(map(str, kernel.output_shape))
        rows.append((kernel.kernel, _short(kernel.name), shape, *figures, kernel.bound_by))
    hidden = len(report.kernels) - TOP_KERNELS
    return [*_table(rows, right={3, 4, 5, 6}), *([f"  and {hidden} more"] if hidden > 0 else [])]


def _leftovers(report: Report) -> list[str]:
    lines = []
    for left in left_on_cpu(report):
        hint = f" ({left.hint})" if left.hint else ""
        lines.append(f"  {left.operator}: {left.where(SHOWN_NAMES)}: {left.reason}{hint}")
    return lines


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
