"""The drawing of a compile's report: nodes by module, with engine, cycles, time on the CPU, SQNR and memory.

Example:
    >>> [overlay.name for overlay in draw_report(report).overlays]
    ['engine', 'cycles', 'CPU ms', 'SQNR dB', 'weight bytes', 'activation bytes']
"""

from __future__ import annotations

from openneutron.explore.drawing import CPU, NPU, Drawing, Edge, Node, Overlay
from openneutron.report.facts import facts
from openneutron.report.html.graph_view import Box, graph_of
from openneutron.report.model import Report

NAME = "by module"


def draw_report(report: Report) -> Drawing:
    """Return the drawing of a report's nodes, or of its operators if it comes from a LiteRT file."""
    boxes = graph_of(report).boxes
    nodes = tuple(
        Node(str(at), box.label, "/".join(box.path), _attributes(box), tuple(Edge(str(one)) for one in box.inputs))
        for at, box in enumerate(boxes)
    )
    engines: dict[str, float | str] = {str(at): NPU if box.engine == "npu" else CPU for at, box in enumerate(boxes)}
    overlays = [Overlay("engine", "engine", engines)]
    figures: dict[str, list[float | None]] = {
        "cycles": [box.cycles or None for box in boxes],
        "CPU ms": [box.milliseconds or None for box in boxes],
        "SQNR dB": [box.sqnr for box in boxes],
        "weight bytes": [box.weight_bytes or None for box in boxes],
        "activation bytes": [box.activation_bytes or None for box in boxes],
    }
    for name, each in figures.items():
        values: dict[str, float | str] = {str(at): value for at, value in enumerate(each) if value is not None}
        if values:
            overlays.append(Overlay(name, "quality" if name.startswith("SQNR") else "cost", values))
    return Drawing(NAME, nodes, dict(facts(report)), tuple(overlays))


def _attributes(box: Box) -> dict[str, str]:
    found = {
        "name": box.name, "operator": box.operator, "module": box.module,
        "runs on": f"NPU, graph {box.graph}" if box.engine == "npu" else f"CPU{f' ({box.host})' if box.host else ''}",
        "kernel": " + ".join(box.kernels), "in the kernel of": box.shared, "why": box.reason, "what to change": box.hint,
        "output": "×".join(map(str, box.shape)), "source": box.source, "before it": ", ".join(box.converts),
        "constants of": ", ".join(box.constants),
    }  # fmt: skip
    return {key: value for key, value in found.items() if value}
