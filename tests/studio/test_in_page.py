"""The calls of a page whose compiler runs in it, answered by this Python."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import openneutron as on
from openneutron.project import make
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


# What a page's Python does not have; the calls below may import none of it.
ONLY_THE_CORE = """
import importlib.abc, json, pathlib, sys

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("ai_edge_litert", "executorch", "rich", "serial", "torch", "torchao", "typer"):
            raise ModuleNotFoundError(f"No module named {name!r}")
        return None

sys.meta_path.insert(0, Absent())
from openneutron.studio.in_page import InPage

folder = pathlib.Path(sys.argv[1])
page = InPage(str(folder / "session"))

def call(method, **parameters):
    answer = json.loads(page.call(method, json.dumps(parameters), lambda text: None))
    assert "result" in answer, answer
    return answer["result"]

model = json.loads(page.upload("convnet.tflite", str(folder / "dropped"), ""))["result"]["id"]
call("fits", model=model)
variant = call("compile", model=model, options={"target": "cortex_m33"})["id"]
call("changes", variant=variant)
call("run", variant=variant)
assert {one["name"] for one in call("boards")["boards"]} > {"mps2-an505", "frdmmcxn947"}
sizes = call("project", variant=variant, platform="cmake", board="mps2-an505")
name, = (one["name"] for one in call("files", variant=variant) if one["name"].endswith(".zip"))
(folder / "project.zip").write_bytes(page.download(variant, name))
print(json.dumps(sizes))
"""


def test_a_page_makes_the_project_of_the_command_with_nothing_but_the_core(tmp_path: Path) -> None:
    (tmp_path / "dropped").write_bytes(tiny.convnet())
    done = subprocess.run(
        [sys.executable, "-c", ONLY_THE_CORE, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    sizes = json.loads(done.stdout)
    program = on.compile(tiny.convnet(), target="cortex_m33", name="convnet.tflite")
    command = "openneutron project convnet.tflite --for cmake --board mps2-an505"
    wanted = make(program, platform="cmake", board="mps2-an505", command=command)
    assert (sizes["flash"], sizes["ram"]) == (wanted.sizes.flash_bytes, wanted.sizes.ram_bytes)
    with zipfile.ZipFile(tmp_path / "project.zip") as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    assert found == {str(path): data for path, data in wanted.files.items()}
