"""Roofline: each kernel's share of the array's peak, against its MACs per byte moved."""

from __future__ import annotations

import math

from openneutron.machine import targets
from openneutron.machine.targets import Target
from openneutron.report.html.chart import Chart, Line, Mark, Scale, Tick, across, polyline, upward
from openneutron.report.html.text import decades
from openneutron.report.model import Kernel, Report

_UNIT = 1024  # the cost constants are in 1/1024 cycle
_SMALLEST, _LARGEST = 3.5, 15.0  # radii: the smallest can still be pointed at


def roofline(report: Report) -> Chart | None:
    """Return the chart; None if no kernel multiplies, or the target's figures are not known."""
    kernels = sorted((k for k in report.kernels if k.macs and k.cycles and _bytes(k)), key=lambda k: -k.cycles)
    if not kernels or report.target not in targets.names():
        return None
    target = targets.load(report.target)
    points = [(k.macs / _bytes(k), k.macs / k.cycles) for k in kernels]
    left, right = _span([intensity for intensity, _ in points])
    low, high = _span([*(rate for _, rate in points), float(target.macs_per_cycle)])
    x, y = across(left, right, logarithmic=True), upward(low, high, logarithmic=True)
    marks = []
    for kernel, (intensity, rate) in zip(kernels, points, strict=True):
        tip = (
            f"{kernel.layer}\n{kernel.kernel}, bound by {kernel.bound_by}\n{rate:.3g} MACs per cycle, "
            f"{rate / target.macs_per_cycle:.0%} of the array\n{intensity:.3g} MACs per byte\n{kernel.cycles:,} cycles"
        )
        # Areas are proportional to cycles.
        radius = max(_SMALLEST, _LARGEST * math.sqrt(kernel.cycles / kernels[0].cycles))
        marks.append(Mark(x(intensity), y(rate), round(radius, 1), kernel.bound_by, tip))
    return Chart(
        name="roofline",
        x_title="MACs per byte of weights and activations",
        y_title="MACs per cycle",
        x_ticks=tuple(Tick(x(value), f"{value:g}") for value in decades(left, right)),
        y_ticks=tuple(Tick(y(value), f"{value:g}") for value in decades(low, high)),
        marks=tuple(marks),
        lines=_roofs(target, (left, right), low, x, y),
    )


def _bytes(kernel: Kernel) -> int:
    return kernel.weight_bytes + kernel.activation_bytes


def _span(values: list[float]) -> tuple[float, float]:
    """Return the bounds of a logarithmic axis: a margin of a factor of two on both sides, at least a decade."""
    low, high = min(values) / 2, max(values) * 2
    return low, max(high, low * 10)


def _roofs(target: Target, span: tuple[float, float], low: float, x: Scale, y: Scale) -> tuple[Line, ...]:
    """Return the array's peak, and the slopes of the memory limits: loading weights, and moving activations."""
    left, right = span
    peak = float(target.macs_per_cycle)
    flat = f"{peak:g} MACs per cycle: the array"
    lines = [Line(polyline([(x(left), y(peak)), (x(right), y(peak))]), "roof", flat, x(left) + 6, y(peak) - 7)]
    for what, cost in (("weights", target.cost.weight_byte), ("activations", target.cost.element)):
        rate = _UNIT / cost
        start, stop = max(left, low / rate), min(right, peak / rate)
        if start < stop:
            (x0, y0), (x1, y1) = (x(start), y(start * rate)), (x(stop), y(stop * rate))
            label = f"{what} at {rate:.2g} bytes per cycle"
            # The label follows the line, just above it.
            angle = math.degrees(math.atan2(y1 - y0, x1 - x0))
            lines.append(
                Line(polyline([(x0, y0), (x1, y1)]), f"slope {what}", label, x0 + 12, y0 - 16, round(angle, 1))
            )
    return tuple(lines)
