"""Pareto chart of memory against cycles: the candidate schedules, and the compiles that confirm some of them."""

from __future__ import annotations

from openneutron.report.html.chart import Chart, Line, Mark, Tick, across, polyline, upward
from openneutron.report.html.text import doublings, short, size, ticks
from openneutron.report.model import Report

_MARGIN = 1.15  # margin, so that no point is on the edge


def pareto(report: Report) -> Chart | None:
    """Return the chart; None if there was only one schedule."""
    totals = report.totals
    offered = sorted(_candidate_points(report))
    compiled = [w for w in report.what_ifs if w.target == report.target and w.proof == "compiled"]
    points = [*offered, *((w.peak_bytes, w.cycles) for w in compiled), (totals.peak_bytes, totals.cycles)]
    if not totals.cycles or len(set(points)) < 2:
        return None
    left, right = min(peak for peak, _ in points) / _MARGIN, max(peak for peak, _ in points) * _MARGIN
    low, high = min(cycles for _, cycles in points), max(cycles for _, cycles in points)
    # Differences matter here, so the axis does not start at zero.
    air = max(high - low, high // 20) * (_MARGIN - 1)
    bottom, top = max(low - air, 0.0), high + air
    x, y = across(left, right, logarithmic=True), upward(bottom, top)

    def mark(peak: int, cycles: int, radius: float, kind: str, what: str) -> Mark:
        return Mark(x(peak), y(cycles), radius, kind, f"{what}\n{size(peak)} of memory at the peak\n{cycles:,} cycles")

    marks = [mark(*point, 4, "offered", "Schedule on offer, estimated") for point in offered]
    marks += [mark(w.peak_bytes, w.cycles, 5, "proved", f"Compiled again: {w.change}") for w in compiled]
    marks.append(mark(totals.peak_bytes, totals.cycles, 7.5, "chosen", "This program"))
    front = polyline([(x(peak), y(cycles)) for peak, cycles in offered])
    return Chart(
        name="pareto",
        x_title="memory at the peak (I/O + scratch + prefetch)",
        y_title="cycles",
        x_ticks=tuple(Tick(x(bytes_), size(bytes_)) for bytes_ in doublings(left, right)),
        y_ticks=tuple(Tick(y(cycles), short(cycles)) for cycles in ticks(bottom, top)),
        marks=tuple(marks),
        lines=(Line(front, "front"),) if len(offered) > 1 else (),
    )


def _candidate_points(report: Report) -> list[tuple[int, int]]:
    """Return (peak bytes, cycles) of each schedule, for a program with one graph; none for others."""
    if report.totals.neutron_graphs != 1:
        return []
    beside = report.totals.peak_bytes - report.totals.scratch_bytes
    return [(beside + choice.scratch_bytes, choice.cycles) for choice in report.pareto]
