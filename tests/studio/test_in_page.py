"""The calls of a page whose compiler runs in it, answered by this Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import openneutron as on
from openneutron.studio.in_page import InPage
from tests import tiny

SAMPLES = json.dumps([{"name": "small", "file": "small.tflite", "what": "A small one."}])


def call(page: InPage, method: str, **parameters: Any) -> Any:
    answer = json.loads(page.call(method, json.dumps(parameters), lambda text: None))
    return answer.get("result", answer.get("error"))


def uploaded(page: InPage, folder: Path) -> str:
    (folder / "dropped").write_bytes(tiny.convnet())
    return str(json.loads(page.upload("convnet.tflite", str(folder / "dropped"), ""))["result"]["id"])


def test_a_model_is_compiled_and_its_file_is_that_of_the_command(tmp_path: Path) -> None:
    page = InPage(str(tmp_path / "session"), SAMPLES)
    hello = call(page, "hello")
    assert (hello["engine"], hello["suffixes"], hello["torch"]) == ("pyodide", [".tflite"], False)
    assert [one["name"] for one in hello["zoo"]] == ["small"] and "pip install openneutron" in hello["note"]
    model = uploaded(page, tmp_path)
    made = call(page, "compile", model=model, options={"target": "mcxn94x"})
    (name,) = [row["name"] for row in call(page, "files", variant=made["id"]) if row["name"].endswith(".tflite")]
    wanted = on.compile(tiny.convnet(), target="mcxn94x", name="convnet.tflite").tflite
    assert page.download(made["id"], name) == wanted
    assert call(page, "run", variant=made["id"])["outputs"]


def test_a_later_worker_finds_models_and_compiles_again(tmp_path: Path) -> None:
    first = InPage(str(tmp_path / "session"))
    model = uploaded(first, tmp_path)
    made = call(first, "compile", model=model, options={})
    second = InPage(str(tmp_path / "session"))
    assert call(second, "models") == []
    second.restore(first.state())
    assert call(second, "models") == call(first, "models")
    assert "<!doctype html>" in call(second, "report", variant=made["id"])["html"]


def test_what_a_page_cannot_do_names_the_command_that_can(tmp_path: Path, monkeypatch: Any) -> None:
    page = InPage(str(tmp_path / "session"))
    (tmp_path / "dropped").write_bytes(b"nothing")
    refused = json.loads(page.upload("model.onnx", str(tmp_path / "dropped"), ""))["error"]
    assert "model.onnx" in refused["text"] and "openneutron studio" in refused["hint"]

    def missing(*_: Any, **__: Any) -> None:
        raise ModuleNotFoundError("No module named 'torch'")

    monkeypatch.setitem(__import__("openneutron.studio.work", fromlist=["WORK"]).WORK, "fits", missing)
    error = call(page, "fits", model=uploaded(page, tmp_path))
    assert not error["bug"] and "No module named 'torch'" in error["message"] and "openneutron studio" in error["hint"]
