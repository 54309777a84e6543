"""A graph to draw, and its JSON as Model Explorer reads it.

Example:
    >>> as_json(Drawing("main", (Node("0", "CONV_2D"),)))["nodes"][0]["label"]
    'CONV_2D'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# Colours of Model Explorer's overlays: from white to a strong one; texts on them stay black.
_GRADIENTS = {"cost": ("#ffffff", "#f59e0b"), "quality": ("#ef4444", "#ffffff")}
NPU, CPU = "NPU", "CPU"
_ENGINES = {NPU: "#a7e3b4", CPU: "#f6c7a0"}


@dataclass(frozen=True)
class Edge:
    """An input of a node: the node it comes from, that node's output, and this node's input."""

    source: str
    output: int = 0
    input: int = 0


@dataclass(frozen=True)
class Node:
    """One box: `namespace` is the path of modules around it, `outputs` describe its results, `graphs` are drawings it opens."""

    id: str
    label: str
    namespace: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    edges: tuple[Edge, ...] = ()
    outputs: tuple[Mapping[str, str], ...] = ()
    graphs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Overlay:
    """One figure or word for nodes by id; `kind` is "cost" (more is worse), "quality" (less is worse) or "engine"."""

    name: str
    kind: str
    values: Mapping[str, float | str]


@dataclass(frozen=True)
class Drawing:
    """One graph with what is known about all of it, and the overlays of its nodes."""

    id: str
    nodes: tuple[Node, ...]
    attributes: Mapping[str, str] = field(default_factory=dict)
    overlays: tuple[Overlay, ...] = ()


def as_json(drawing: Drawing) -> dict[str, Any]:
    """Return the drawing as a graph of Model Explorer."""
    made: dict[str, Any] = {"id": drawing.id, "nodes": [_node(node) for node in drawing.nodes]}
    if drawing.attributes:
        made["groupNodeAttributes"] = {"": dict(drawing.attributes)}
    return made


def collection(label: str, drawings: Sequence[Drawing]) -> dict[str, Any]:
    """Return drawings as the file that Model Explorer opens without an extension."""
    return {"label": label, "graphs": [{**as_json(one), "collectionLabel": label} for one in drawings]}


def overlays_json(drawings: Sequence[Drawing]) -> dict[str, dict[str, Any]]:
    """Return name → node data of all drawings that have an overlay of this name."""
    found: dict[str, dict[str, Any]] = {}
    for drawing in drawings:
        for overlay in drawing.overlays:
            found.setdefault(overlay.name, {})[drawing.id] = node_data(overlay)
    return found


def node_data(overlay: Overlay) -> dict[str, Any]:
    """Return one overlay as node data of one graph."""
    if overlay.kind == "engine":
        results = {
            node: {"value": value, "bgColor": _ENGINES[str(value)], "textColor": "#000000"}
            for node, value in overlay.values.items()
        }
        return {"name": overlay.name, "results": results, "showExpandedSummaryOnGroupNode": True}
    low, high = _GRADIENTS[overlay.kind]
    return {
        "name": overlay.name,
        "results": {node: {"value": value} for node, value in overlay.values.items()},
        "gradient": [{"stop": 0, "bgColor": low, "textColor": "#000000"}, {"stop": 1, "bgColor": high, "textColor": "#000000"}],
    }  # fmt: skip


def _node(node: Node) -> dict[str, Any]:
    return {
        "id": node.id,
        "label": node.label,
        "namespace": node.namespace,
        "attrs": _pairs(node.attributes),
        "incomingEdges": [
            {"sourceNodeId": edge.source, "sourceNodeOutputId": str(edge.output), "targetNodeInputId": str(edge.input)}
            for edge in node.edges
        ],
        "outputsMetadata": [{"id": str(at), "attrs": _pairs(one)} for at, one in enumerate(node.outputs)],
        "subgraphIds": list(node.graphs),
    }


def _pairs(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in values.items()]
