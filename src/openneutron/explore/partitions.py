"""The drawing of a program by partition: what each delegate runs is a group, the rest stands outside.

Example:
    >>> {node.namespace for node in draw_partitions(report).nodes}
    {'partition 0 (neutron)/features', ''}
"""

from __future__ import annotations

from dataclasses import replace

from openneutron.explore.compiled import draw_report
from openneutron.explore.drawing import Drawing
from openneutron.report.html.graph_view import graph_of
from openneutron.report.model import Report

NAME = "by partition"


def draw_partitions(report: Report) -> Drawing:
    """Return the drawing of a report's nodes, those of a delegate in a group of its own around their modules."""
    drawing, boxes = draw_report(report), graph_of(report).boxes
    nodes = tuple(
        replace(node, namespace="/".join(filter(None, (f"partition {box.graph} (neutron)", node.namespace))))
        if box.engine == "npu"
        else node
        for node, box in zip(drawing.nodes, boxes, strict=True)
    )
    return replace(drawing, id=NAME, nodes=nodes)
