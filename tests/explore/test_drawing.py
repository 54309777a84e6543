"""JSON of drawings and overlays in the form that Model Explorer opens."""

from __future__ import annotations

from openneutron.explore.drawing import CPU, NPU, Drawing, Edge, Node, Overlay, as_json, collection, overlays_json

DRAWING = Drawing(
    "main",
    (
        Node("a", "input", outputs=({"tensor_shape": "1×4"},)),
        Node("b", "conv", "net/stem", {"stride": "2"}, (Edge("a", 0, 1),), graphs=("NeutronGraph 0",)),
    ),
    {"target": "imxrt700"},
    (Overlay("cycles", "cost", {"b": 12.0}), Overlay("engine", "engine", {"a": CPU, "b": NPU})),
)


def test_a_drawing_has_the_keys_of_model_explorers_schema() -> None:
    made = as_json(DRAWING)
    assert made["groupNodeAttributes"] == {"": {"target": "imxrt700"}}
    first, second = made["nodes"]
    assert first["outputsMetadata"] == [{"id": "0", "attrs": [{"key": "tensor_shape", "value": "1×4"}]}]
    assert second["incomingEdges"] == [{"sourceNodeId": "a", "sourceNodeOutputId": "0", "targetNodeInputId": "1"}]
    assert (second["namespace"], second["subgraphIds"]) == ("net/stem", ["NeutronGraph 0"])
    assert [one["collectionLabel"] for one in collection("m", [DRAWING, DRAWING])["graphs"]] == ["m", "m"]


def test_overlays_are_node_data_by_graph() -> None:
    found = overlays_json([DRAWING, Drawing("other", (), overlays=(Overlay("cycles", "cost", {"x": 1.0}),))])
    assert set(found) == {"cycles", "engine"} and set(found["cycles"]) == {"main", "other"}
    cycles, engine = found["cycles"]["main"], found["engine"]["main"]
    assert cycles["results"] == {"b": {"value": 12.0}}
    assert [one["stop"] for one in cycles["gradient"]] == [0, 1]
    assert engine["results"]["a"]["value"] == "CPU"
    assert engine["results"]["a"]["bgColor"] != engine["results"]["b"]["bgColor"]
