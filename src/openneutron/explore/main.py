"""The extension that Model Explorer loads: an adapter for compiled files and models, and overlays for their graphs.

    model-explorer --extensions=openneutron.explore model.pte

Model Explorer imports the module `main` of the packages that it is given; importing it registers the classes below.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from model_explorer import (
    Adapter,
    AdapterMetadata,
    GetConfigEditorsResult,
    ModelExplorerGraphs,
    NodeDataProvider,
    NodeDataProviderFilter,
    NodeDataProviderMetadata,
    NodeDataProviderResult,
    graph_builder,
    node_data_builder,
)

from openneutron.errors import OpenNeutronError
from openneutron.explore.drawing import Drawing, Overlay, as_json, node_data
from openneutron.explore.files import drawings_of
from openneutron.files import read_file

ADAPTER_ID = "openneutron"
FILES = ["pte", "tflite"]


class OpenNeutronAdapter(Adapter):  # type: ignore[misc] # Model Explorer has no types
    """Draws `.pte` and `.tflite` files with their NeutronGraphs opened into calls."""

    metadata = AdapterMetadata(
        id=ADAPTER_ID,
        name="OpenNeutron",
        description="Compiled files for NXP's eIQ Neutron NPU: delegates opened into kernel calls, buffers and addresses",
        source_repo="https://github.com/openneutron/openneutron",
        fileExts=FILES,
    )

    def convert(self, model_path: str, settings: dict[str, Any]) -> ModelExplorerGraphs:
        """Return the graphs of a file."""
        return {"graphs": [graph_of(drawing) for drawing in _drawings(model_path)]}


class OpenNeutronOverlays(NodeDataProvider):  # type: ignore[misc] # as above
    """Colours the nodes of such a file by engine, cycles and memory."""

    metadata = NodeDataProviderMetadata(
        id="openneutron_overlays",
        name="OpenNeutron: engine, cycles, memory",
        description="NPU or CPU, the machine model's cycles in the open schedule, bytes of results",
        source_repo=OpenNeutronAdapter.metadata.source_repo,
        filter=NodeDataProviderFilter(modelFileExts=FILES, adapterIds=[ADAPTER_ID]),
    )

    def get_config_editors(self, provider_id: str) -> GetConfigEditorsResult:
        """Return no settings: everything is in the file."""
        return GetConfigEditorsResult(configEditors=[])

    def run(
        self, provider_id: str, model_path: str, graph_id: str, config_values: dict[str, Any], graph: Any
    ) -> NodeDataProviderResult:
        """Return the overlays of one graph; what is wrong with the file is in `error`."""
        try:
            overlays = next((one.overlays for one in _drawings(model_path) if one.id == graph_id), ())
        except OpenNeutronError as error:
            return NodeDataProviderResult(error=str(error))
        if not overlays:
            return NodeDataProviderResult(error=f"nothing is known about the nodes of {graph_id!r}")
        return NodeDataProviderResult(result=[_data(one) for one in overlays])


def graph_of(drawing: Drawing) -> graph_builder.Graph:
    """Return a drawing as Model Explorer's own classes."""
    raw = as_json(drawing)
    return graph_builder.Graph(
        raw["id"], [_node(one) for one in raw["nodes"]], groupNodeAttributes=raw.get("groupNodeAttributes")
    )


def _drawings(path: str) -> list[Drawing]:
    return drawings_of(read_file(path), Path(path).name)


def _node(raw: dict[str, Any]) -> graph_builder.GraphNode:
    def pairs(values: list[dict[str, str]]) -> list[graph_builder.KeyValue]:
        return [graph_builder.KeyValue(**one) for one in values]

    return graph_builder.GraphNode(
        raw["id"],
        raw["label"],
        raw["namespace"],
        raw["subgraphIds"],
        pairs(raw["attrs"]),
        [graph_builder.IncomingEdge(**edge) for edge in raw["incomingEdges"]],
        [graph_builder.MetadataItem(one["id"], pairs(one["attrs"])) for one in raw["outputsMetadata"]],
    )


def _data(overlay: Overlay) -> node_data_builder.GraphNodeData:
    raw = node_data(overlay)
    return node_data_builder.GraphNodeData(
        results={name: node_data_builder.NodeDataResult(**one) for name, one in raw["results"].items()},
        name=raw["name"],
        gradient=[node_data_builder.GradientItem(**one) for one in raw.get("gradient", [])],
        showExpandedSummaryOnGroupNode=raw.get("showExpandedSummaryOnGroupNode", False),
    )
