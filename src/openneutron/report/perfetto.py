"""Trace of the timeline for ui.perfetto.dev and chrome://tracing: a process per graph, lanes for the array and copies.

Times are the simulated cycles at the target's clock.

Example:
    >>> Path("trace.json").write_text(trace(report, clock_hz=324_000_000))
"""

from __future__ import annotations

import json
from typing import Any

from openneutron.report.model import Event, Kernel, Report

_LANES = {"array": 1, "dma": 2}
_NAMES = {"array": "array (compute)", "dma": "copies (DMA)"}
_MICROSECONDS = 1e6  # the unit of the format


def trace(report: Report, *, clock_hz: int) -> str:
    """Return Trace Event Format as JSON text; graphs follow one another, as a program runs them."""
    kernels = {(kernel.graph, kernel.node): kernel for kernel in report.kernels}
    rows: list[dict[str, Any]] = []
    base = 0
    for graph in dict.fromkeys(event.graph for event in report.events):
        mine = [event for event in report.events if event.graph == graph]
        rows += _heads(graph, report.source)
        rows += [_row(event, base, clock_hz, kernels.get((graph, event.node))) for event in mine]
        base += max(event.end for event in mine)
    about = {"source": report.source, "target": report.target, "clock_hz": clock_hz, "cycles": report.totals.cycles}
    return json.dumps({"traceEvents": rows, "displayTimeUnit": "ns", "otherData": about})


def _heads(graph: int, source: str) -> list[dict[str, Any]]:
    """Return the names of the process and of its lanes."""
    rows = [{"ph": "M", "name": "process_name", "pid": graph, "args": {"name": f"{source or 'model'}, graph {graph}"}}]
    for lane, number in _LANES.items():
        rows.append({"ph": "M", "name": "thread_name", "pid": graph, "tid": number, "args": {"name": _NAMES[lane]}})
    return rows


def _row(event: Event, base: int, clock_hz: int, kernel: Kernel | None) -> dict[str, Any]:
    scale = _MICROSECONDS / clock_hz
    cycles = {"start_cycle": event.start, "cycles": event.end - event.start}
    if event.lane == "array":
        details: dict[str, Any] = {
            "rows": f"{event.first_row} to {event.first_row + event.rows - 1}",
            "node": event.node,
        }
        if kernel is not None:
            details |= {
                "layer": kernel.name,
                "shape": "x".join(map(str, kernel.output_shape)),
                "bound_by": kernel.bound_by,
            }
    else:
        details = {"bytes": event.rows, "channel": event.node}
    return {
        "ph": "X",
        "name": event.name,
        "cat": event.lane,
        "pid": event.graph,
        "tid": _LANES.get(event.lane, len(_LANES) + 1),
        "ts": (event.start + base) * scale,
        "dur": (event.end - event.start) * scale,
        "args": details | cycles,
    }
