"""The report as an HTML fragment for notebooks.

Example:
    >>> fragment(Report(target="imxrt700"))[:7]
    '<table>'
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from openneutron.report import columns
from openneutron.report.facts import costliest, facts, left_on_cpu, share, title
from openneutron.report.model import Report

# Few enough rows for a notebook cell; the report has all.
TOP_KERNELS = 10


def fragment(report: Report) -> str:
    """Return summary, costliest kernels and nodes on the CPU as plain tables in the page's own style."""
    parts = [_table(title(report), (), facts(report))]
    both = columns.rows(report)
    if both:
        parts.append(_table(columns.WHICH, ("", columns.STOCK, columns.OPEN), both))
    if report.kernels:
        rows = [
            (
                k.kernel,
                k.layer,
                "x".join(map(str, k.output_shape)),
                f"{k.cycles:,}",
                f"{share(k, report):.0%}",
                k.bound_by,
            )
            for k in costliest(report, TOP_KERNELS)
        ]
        parts.append(_table("Kernels by cycles", ("kernel", "output", "shape", "cycles", "share", "bound by"), rows))
    left = [(item.operator, item.where(len(item.names)), item.reason, item.hint) for item in left_on_cpu(report)]
    if left:
        parts.append(_table("Left on the CPU", ("operator", "where", "why", "what to change"), left))
    return "\n".join(parts)


def _table(caption: str, headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    head = f"<thead>{_row('th', headings)}</thead>" if headings else ""
    body = "".join(_row("td", row) for row in rows)
    return f"<table><caption>{escape(caption)}</caption>{head}<tbody>{body}</tbody></table>"


def _row(tag: str, cells: tuple[str, ...]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"
