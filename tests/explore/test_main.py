"""The extension as Model Explorer loads and calls it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import openneutron as on
from tests import tiny


@pytest.fixture(scope="module")
def manager() -> Any:
    from model_explorer.extension_manager import ExtensionManager

    made = ExtensionManager(["openneutron.explore"])
    made.load_extensions()
    return made


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("explore") / "convnet.tflite"
    path.write_bytes(on.compile(tiny.convnet()).tflite)
    return path


def test_its_adapter_is_found_and_converts(manager: Any, model: Path) -> None:
    known = {one["id"]: one for one in manager.get_extensions_metadata()}
    assert known["openneutron"]["fileExts"] == ["pte", "tflite"]
    command = {"cmdId": "convert", "extensionId": "openneutron", "modelPath": str(model), "settings": {}}
    graphs = json.loads(json.dumps(manager.run_cmd(command)))["graphs"]
    assert [graph["id"] for graph in graphs] == ["main", "NeutronGraph 0"]
    assert graphs[1]["groupNodeAttributes"][""]["target"] == "imxrt700"
    ids = [{node["id"] for node in graph["nodes"]} for graph in graphs]
    for graph, known_ids in zip(graphs, ids, strict=True):
        assert all(edge["sourceNodeId"] in known_ids for node in graph["nodes"] for edge in node["incomingEdges"])


@pytest.mark.parametrize(
    ("graph", "names"), [("main", {"engine", "cycles"}), ("NeutronGraph 0", {"cycles", "output bytes"})]
)
def test_its_overlays_are_node_data(manager: Any, model: Path, graph: str, names: set[str]) -> None:
    command = {
        "cmdId": "run", "extensionId": "openneutron_overlays", "modelPath": str(model), "graphId": graph, "configValues": {},
    }  # fmt: skip
    found = manager.run_cmd(command)
    assert found["error"] == "" and {one["name"] for one in found["result"]} == names
    assert all(one["results"] for one in found["result"])


def test_a_bad_file_is_a_sentence(manager: Any, tmp_path: Path) -> None:
    from openneutron.errors import OpenNeutronError

    (tmp_path / "bad.tflite").write_bytes(b"no model")
    command = {
        "cmdId": "convert",
        "extensionId": "openneutron",
        "modelPath": str(tmp_path / "bad.tflite"),
        "settings": {},
    }
    with pytest.raises(OpenNeutronError, match=r"bad\.tflite"):
        manager.run_cmd(command)
    run = {**command, "cmdId": "run", "extensionId": "openneutron_overlays", "graphId": "main", "configValues": {}}
    assert "bad.tflite" in manager.run_cmd(run)["error"]
