"""The report on a terminal.

Example:
    >>> print_report(report, Console())
"""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from openneutron.report import columns
from openneutron.report.facts import SHOWN_REASONS, costliest, facts, leftovers_of, share, title
from openneutron.report.model import Report

# More rows would push the summary off an ordinary terminal; --json has all of them.
TOP_KERNELS = 10
# Names of nodes shown per reason before "and N more".
SHOWN_NAMES = 3


def print_report(report: Report, console: Console, *, everything: bool = False) -> None:
    """Print the summary, the costliest kernels and the nodes on the CPU, with `everything` all reasons."""
    console.print(whole(report, 0 if everything else SHOWN_REASONS))


def whole(report: Report, reasons: int = SHOWN_REASONS) -> RenderableType:
    """Return the whole report as a rich renderable."""
    parts = [summary(report)]
    if columns.rows(report):
        parts.append(both_columns(report))
    if report.kernels:
        parts.append(kernels(report))
    if leftovers_of(report).groups:
        parts.append(leftovers(report, reasons))
    return Group(*parts)


def summary(report: Report) -> RenderableType:
    """Return the panel with the most important figures."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="cyan", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, sentence in facts(report):
        grid.add_row(label, Text(sentence, style="bold red" if label == "warning" else ""))
    return Panel(grid, title=Text(title(report)), title_align="left", expand=False)


def both_columns(report: Report) -> RenderableType:
    """Return the result of NXP's converter beside that of the open schedule."""
    table = Table(title="On the board", title_justify="left", title_style="bold", header_style="cyan", box=None)
    table.add_column("")
    for heading in (columns.STOCK, columns.OPEN):
        table.add_column(heading, overflow="fold")
    for row in columns.rows(report):
        table.add_row(*map(Text, row))
    return Group(table, Text(f"  {columns.WHICH}", style="dim"))


def kernels(report: Report, count: int = TOP_KERNELS) -> RenderableType:
    """Return the costliest kernels with their share and what bounds them."""
    table = Table(title="Kernels by cycles", title_justify="left", title_style="bold", header_style="cyan", box=None)
    for heading in ("kernel", "layer", "shape"):
        table.add_column(heading, overflow="fold")
    for heading in ("calls", "MACs", "cycles", "share"):
        table.add_column(heading, justify="right")
    table.add_column("bound by")
    for kernel in costliest(report, count):
        shape = "x".join(map(str, kernel.output_shape))
        figures = (f"{kernel.calls:,}", f"{kernel.macs:,}", f"{kernel.cycles:,}", f"{share(kernel, report):.0%}")
        table.add_row(kernel.kernel, Text(kernel.layer), shape, *figures, kernel.bound_by)
    hidden = len(report.kernels) - count
    return Group(table, Text(f"  and {hidden} more", style="dim")) if hidden > 0 else table


def leftovers(report: Report, reasons: int = SHOWN_REASONS) -> RenderableType:
    """Return the nodes on the CPU, why, and what to change, the most frequent reasons first (0: all)."""
    table = Table(title="Left on the CPU", title_justify="left", title_style="bold", header_style="cyan", box=None)
    found = leftovers_of(report, reasons)
    groups = found.groups
    hints = any(left.hint for left in groups)
    for heading in ("operator", "where", "why", *(["what to change"] if hints else [])):
        table.add_column(heading, overflow="fold")
    for left in groups:
        cells = (left.operator, left.where(SHOWN_NAMES), left.reason, *([left.hint] if hints else []))
        table.add_row(*map(Text, cells))
    return Group(table, Text(f"  {found.more}", style="dim")) if found.more else table
