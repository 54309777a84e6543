"""The drawings of a file: a LiteRT model, an ExecuTorch program, a Neutron payload or microcode.

Example:
    >>> [drawing.id for drawing in drawings_of(Path("model.pte").read_bytes(), "model.pte")]
    ['instructions', 'NeutronGraph 0']
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from openneutron.cli.inputs.blocks import Blocks, blocks_of_file
from openneutron.explore.calls import draw_program
from openneutron.explore.drawing import Drawing, Edge, Node, Overlay
from openneutron.explore.litert import draw_litert, neutron_graph_id
from openneutron.explore.plan import draw_plan
from openneutron.files import kind_of
from openneutron.report.model import Report

ONLY_HEADER = "made by NXP's converter: only the header of its microcode can be read"


def drawings_of(data: bytes, where: str, report: Report | None = None) -> list[Drawing]:
    """Return the drawings of a file, the outermost first; with its `report` calls have the names of layers.

    Microcode of NXP's converter has one node with what its header says.
    """
    kind, blocks = kind_of(data), blocks_of_file(data, where)
    labels = _labels(report)
    opened = [_open(one, number, labels.get(number, {})) for number, one in enumerate(blocks)]
    if kind == "tflite":
        from openneutron.litert.read import read_model

        return [*_with_costs(draw_litert(read_model(data, source=where)), opened), *opened]
    if kind == "pte":
        from openneutron.microcode.pte import read_calls

        return [*_with_costs([draw_plan(read_calls(data, where=where))], opened), *opened]
    return opened


def _open(blocks: Blocks, number: int, labels: dict[int, str]) -> Drawing:
    name = neutron_graph_id(number)
    if blocks.container.made_by == "open":
        return draw_program(blocks.program(), name, labels=labels)
    header = {key.replace("_", " "): str(value) for key, value in asdict(blocks.container).items() if value is not None}
    header["made by"] = blocks.container.made_by
    header["version word"] = f"0x{blocks.container.version_word:08X}"
    ends = [Node(f"input {at}", f"input {at}") for at in range(blocks.container.inputs)]
    body = Node(
        "microcode",
        "NXP microcode",
        attributes=header,
        edges=tuple(Edge(one.id, input=at) for at, one in enumerate(ends)),
    )
    outs = [
        Node(f"output {at}", f"output {at}", edges=(Edge("microcode", at),)) for at in range(blocks.container.outputs)
    ]
    return Drawing(name, (*ends, body, *outs), {"note": ONLY_HEADER})


def _labels(report: Report | None) -> dict[int, dict[int, str]]:
    found: dict[int, dict[int, str]] = {}
    for kernel in report.kernels if report is not None else ():
        found.setdefault(kernel.graph, {})[kernel.node] = kernel.layer
    return found


def _with_costs(drawings: Sequence[Drawing], opened: Sequence[Drawing]) -> list[Drawing]:
    """Give the nodes that open a NeutronGraph the sum of its cycles."""
    sums = {
        drawing.id: sum(float(value) for value in overlay.values.values())
        for drawing in opened
        for overlay in drawing.overlays
        if overlay.name == "cycles"
    }
    found = []
    for drawing in drawings:
        cycles = {
            node.id: sum(sums[name] for name in node.graphs if name in sums) for node in drawing.nodes if node.graphs
        }
        more = (Overlay("cycles", "cost", cycles),) if any(cycles.values()) else ()
        found.append(Drawing(drawing.id, drawing.nodes, drawing.attributes, (*drawing.overlays, *more)))
    return found
