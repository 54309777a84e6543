"""The page with the compiler in it: the bytes of a native compile, in Node.js and in a browser, and no request elsewhere.

It needs emcc and numpy for Pyodide (NUMPY_WASM=file, or the network); without them the tests skip.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import http.server
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType

import pytest

import openneutron as on
from benchmarks.board_networks import BOARD_NETWORKS
from openneutron.cli.inputs.loading import compile_source
from openneutron.cli.shared.reporting import litert_models
from openneutron.cli.zoo import describe_models
from openneutron.machine import targets
from openneutron.project.runtime_sources import runtime_files
from openneutron.run.given import random_inputs
from openneutron.run.runner import LiteRtRunner
from tests import tiny
from tests.report.html.browser import Browser, browser, find
from tests.studio.axe import faults
from tests.studio.test_page import DROP

ROOT = Path(__file__).resolve().parents[2]
SMALLEST = "cifarnet"  # of the zoo's LiteRT files that come along
COMPARE = Path(__file__).with_name("playground.mjs")


def script() -> ModuleType:
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        spec = importlib.util.spec_from_file_location("playground", ROOT / "scripts" / "playground.py")
        assert spec is not None and spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
    finally:
        sys.path.pop(0)
    return made


def built(folder: Path, samples: Sequence[str]) -> Path:
    """The built folder, with models of the zoo that come along; the test skips where it cannot be built."""
    made = script()
    for tool in ("emcc", "node"):
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool}")
    try:
        made.build(folder, os.environ.get("NUMPY_WASM", ""), samples)
    except made.archives.ArchiveError as error:
        pytest.skip(str(error))
    except made.PlaygroundError as error:
        if "cannot be fetched" not in str(error):
            raise
        pytest.skip(str(error))
    return folder


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("playground") / "site", script().SAMPLES)


def zoo_file(name: str) -> bytes:
    """The LiteRT model of a zoo's network."""
    program, loaded = compile_source(name, lambda text: None, dump_intermediates=True)
    return max(litert_models(program, loaded), key=len)


def assert_same_in_node(site: Path, folder: Path, models: Mapping[str, bytes], chips: Sequence[str]) -> None:
    """Compile and run the models for the chips here and in the page's Python: files, outputs and cycles are the same."""
    wanted = {}
    for name, model in models.items():
        (folder / f"{name}.tflite").write_bytes(model)
        for chip in chips:
            program = on.compile(model, target=chip, name=f"{name}.tflite")
            digests, cycles = [hashlib.sha256(program.tflite).hexdigest()], 0
            if all(operator.converted for operator in program.report.operators):
                runner = LiteRtRunner(program.tflite, source="program")
                found = runner.run(random_inputs(runner.inputs, seed=1))
                outputs = b"".join(value.tobytes() for value in found.outputs.values())
                digests.append(hashlib.sha256(outputs).hexdigest())
                cycles = found.cycles
            wanted[f"{name} {chip}"] = [*digests, cycles]
    assert sum(len(one) == 3 for one in wanted.values()) > len(wanted) / 2
    command = ["node", str(COMPARE), str(site), str(folder), *chips]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == wanted


def test_what_is_missing_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = script()
    (tmp_path / "numpy.whl").write_bytes(b"no zip")
    with pytest.raises(made.PlaygroundError, match="no wheel or zip of numpy"):
        made.numpy_for(tmp_path, str(tmp_path / "numpy.whl"), tmp_path)
    monkeypatch.setattr(made.shutil, "which", lambda name: None)
    with pytest.raises(made.PlaygroundError, match="install Emscripten"):
        made.compile_library(tmp_path)


def test_the_python_half_leaves_out_what_a_page_cannot_use(tmp_path: Path) -> None:
    import zipfile

    library = tmp_path / "lib.so"
    library.write_bytes(b"wasm")
    script().pack_python(tmp_path / "core.zip", library)
    names = zipfile.ZipFile(tmp_path / "core.zip").namelist()
    assert {"openneutron/api.py", "openneutron/lib/libopenneutron.so", "jinja2/environment.py"} <= set(names)
    assert {f"openneutron/{name}" for name in (*runtime_files(), "runtime/LICENSE")} <= set(names)
    assert not any(name.startswith("openneutron/zoo/") or name.endswith((".npz", ".pt")) for name in names)
    assert any("LICEN" in name for name in names)


def test_node_compiles_and_runs_the_smallest_network_to_the_same_bytes(tmp_path: Path) -> None:
    if not os.environ.get("NUMPY_WASM"):
        pytest.skip("needs NUMPY_WASM=file; make test-full gets it from Pyodide's server")
    site = built(tmp_path / "site", [SMALLEST])
    (tmp_path / "models").mkdir()
    model = (site / "models" / f"{SMALLEST}.tflite").read_bytes()
    assert_same_in_node(site, tmp_path / "models", {SMALLEST: model}, ["mcxn94x"])


@pytest.mark.full
def test_node_compiles_and_runs_to_the_same_bytes(bundle: Path, tmp_path: Path) -> None:
    models = {file.stem: file.read_bytes() for file in sorted((bundle / "models").glob("*.tflite"))}
    assert sorted(models) == sorted(script().SAMPLES)
    models |= {"tiny": tiny.convnet(), **{name: make() for name, make in BOARD_NETWORKS.items()}}
    assert_same_in_node(bundle, tmp_path, models, list(targets.geometries()))


@pytest.mark.full
def test_node_compiles_and_runs_the_whole_zoo_to_the_same_bytes(bundle: Path, tmp_path: Path) -> None:
    models = {name: zoo_file(name) for name in describe_models()}
    assert len(models) >= 17
    assert_same_in_node(bundle, tmp_path, models, ["imxrt700", "imx95"])


@pytest.fixture(scope="module")
def asked() -> list[str]:
    """Paths that the browser asked the server for."""
    return []


@pytest.fixture(scope="module")
def page(bundle: Path, asked: list[str]) -> Iterator[Browser]:
    find()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            asked.append(self.path)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(bundle)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with browser(1280, 900) as window:
            window.visit(f"http://127.0.0.1:{server.server_address[1]}/index.html")
            window.wait("return document.body.dataset.ready")
            yield window
    finally:
        server.shutdown()
        thread.join()


@pytest.mark.full
def test_a_page_without_a_server_judges_compiles_runs_and_keeps(
    page: Browser, asked: list[str], tmp_path: Path
) -> None:
    assert page.shows("#promise", "openneutron studio") and faults(page) == []
    page.script(DROP, base64.b64encode(tiny.convnet()).decode(), "convnet.tflite")
    page.wait("return document.querySelector('.fit-table tbody tr')")
    page.click("[data-report=mcxn94x]")
    page.wait("return document.querySelector('.report-frame')")
    page.click("#find-changes")
    page.wait("return document.querySelector('[data-change]')")
    page.click("#tab-run")
    page.wait("return document.querySelector('#run')")
    page.click("#run")
    page.wait("return document.querySelectorAll('.output').length === 1")
    assert faults(page) == []
    page.devtools("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.click("#tab-files")
    name = page.wait("return document.querySelector('.files [data-file$=tflite]')?.dataset.file")
    page.click(f'[data-file="{name}"]')
    until = time.monotonic() + 300
    while not (tmp_path / name).exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    assert (tmp_path / name).read_bytes() == on.compile(tiny.convnet(), target="mcxn94x", name="convnet.tflite").tflite
    page.click("#make-project")
    page.wait("return document.querySelector('#project-sizes')")
    page.call("POST", "/refresh", {})
    page.wait("return document.body.dataset.ready")
    assert page.shows("#models .now strong", "convnet.tflite")
    page.wait("return document.querySelector('.files [data-file$=tflite]')")
    page.wait("return document.querySelector('.files [data-file$=zip]')")
    assert page.log() == [] and {"/packages/numpy.zip", "/pyodide/pyodide.asm.wasm"} <= set(asked)


# Compiles a model that comes along for each chip, and digests the files, by the page's own engine.
COMPILE_ALL = """const [name, chips] = arguments;
    return (async () => {
      const { openEngine } = await import("./engine.js");
      const engine = await openEngine(), found = {};
      const model = await engine.call("zoo", { name });
      for (const target of chips) {
        const made = await engine.call("compile", { model: model.id, options: { target } });
        const file = (await engine.call("files", { variant: made.id })).find((one) => one.name.endsWith(".tflite"));
        const data = await (await engine.download(made.id, file.name)).arrayBuffer();
        const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", data));
        found[target] = [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
      }
      window.compiled = found;
    })().catch((error) => { window.compiled = { error: String(error) }; })"""


@pytest.mark.full
def test_the_browser_compiles_the_zoos_models_to_the_same_bytes(page: Browser, bundle: Path) -> None:
    models = sorted((bundle / "models").glob("*.tflite"))
    assert sorted(file.stem for file in models) == sorted(script().SAMPLES)
    for file in models:
        page.script("window.compiled = null")
        page.script(f"{{ {COMPILE_ALL.replace('return (', '(', 1)} }}", file.stem, list(targets.names()))
        found = page.wait("return window.compiled", seconds=300)
        wanted = {chip: on.compile(file.read_bytes(), target=chip, name=file.name).tflite for chip in targets.names()}
        assert found == {chip: hashlib.sha256(data).hexdigest() for chip, data in wanted.items()}, file.stem


@pytest.mark.full
def test_other_files_are_refused_and_cancelled_work_leaves_a_page_that_works(page: Browser) -> None:
    page.script(DROP, base64.b64encode(b"nothing").decode(), "model.onnx")
    page.wait("return document.querySelector('#errors').textContent.includes('pip install openneutron')")
    page.click("#errors button")
    page.script("const z = document.querySelector('#zoo'); z.value = 'cifarnet'; z.dispatchEvent(new Event('change'))")
    page.wait("return document.querySelector('#title').textContent === 'cifarnet.tflite'")
    page.wait("return document.querySelector('.job button')")
    page.click(".job button")
    page.wait("return !document.querySelector('.job')")
    page.click("#tab-fit")
    page.wait("return document.querySelector('#again') || document.querySelector('.fit-table')")
    if page.script("return document.querySelector('#again') !== null"):
        page.click("#again")
    page.wait("return document.querySelector('.fit-table')")
    assert page.script("return document.querySelectorAll('#models li').length") == 2
