from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


def test_a_model_is_compiled_and_written_with_its_overlays(command, folder: Path) -> None:
    outcome = command("explore", "convnet.tflite", "-o", "graphs", "--target", "mcxn94x")
    assert outcome.code == 0 and outcome.out.startswith("graphs/convnet.json: ")
    graphs = json.loads((folder / "graphs" / "convnet.json").read_text())["graphs"]
    assert [graph["id"] for graph in graphs] == ["by module", "main", "NeutronGraph 0"]
    assert graphs[0]["groupNodeAttributes"][""]["estimate"].endswith("on mcxn94x, open schedule")
    cycles = json.loads((folder / "graphs" / "convnet_cycles.json").read_text())
    sums = [sum(one["value"] for one in cycles[graph["id"]]["results"].values()) for graph in graphs]
    assert sums[0] == sums[1] == sums[2] > 0


def test_a_compiled_file_is_shown_as_it_is(command, folder: Path, refused) -> None:
    assert command("compile", "convnet.tflite", "-o", "out.tflite").code == 0
    graphs = json.loads(command("explore", "out.tflite", "--json").out)["graphs"]
    assert [graph["id"] for graph in graphs] == ["main", "NeutronGraph 0"]
    (folder / "bad.tflite").write_bytes((folder / "out.tflite").read_bytes()[:500])
    assert "bad.tflite" in refused("explore", "bad.tflite", "--json")


def test_model_explorer_is_given_files_on_the_loopback_interface(
    command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import model_explorer

    given: dict[str, Any] = {}

    def serve(config: Any, **options: Any) -> None:
        given.update(
            options, models=config.model_sources, data=[Path(one).read_text() for one in config.node_data_sources]
        )

    monkeypatch.setattr(model_explorer, "visualize_from_config", serve)
    assert command("explore", "convnet.tflite", "--no-browser", "--port", "8123", "--no-accuracy").code == 0
    assert (given["host"], given["port"], given["no_open_in_browser"]) == ("127.0.0.1", 8123, True)
    assert Path(given["models"][0]["url"]).name == "convnet.json" and len(given["data"]) >= 3
    assert not Path(given["models"][0]["url"]).exists()  # they go with the command


def test_without_model_explorer_the_extra_is_named(refused, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "model_explorer", None)
    assert "pip install 'openneutron[model-explorer]'" in refused("explore", "convnet.tflite")
