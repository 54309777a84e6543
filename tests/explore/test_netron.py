"""Netron's own reader opens our `.tflite` files, with names that a person can read."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import openneutron as on
from tests import tiny
from tests.studio.axe import archive

READER = Path(__file__).with_name("netron.mjs")


@pytest.fixture(scope="module")
def netron(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Netron's scripts as modules, as its server hands them out."""
    if shutil.which("node") is None:
        pytest.skip("needs Node.js: apt-get install npm")
    folder = tmp_path_factory.mktemp("netron")
    for name in (
        "base.js",
        "flatbuffers.js",
        "flexbuffers.js",
        "zip.js",
        "tflite.js",
        "tflite-schema.js",
        "tflite-metadata.json",
    ):
        shutil.copyfile(archive("netron") / "netron" / name, folder / name)
    (folder / "package.json").write_text('{"type": "module"}')
    return folder


def opened(netron: Path, file: Path) -> Any:
    done = subprocess.run(["node", str(READER), str(netron), str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_a_neutron_graph_has_its_name_tensors_and_blocks(netron: Path, tmp_path: Path) -> None:
    program = on.compile(tiny.convnet())
    totals = program.report.totals
    (tmp_path / "out.tflite").write_bytes(program.tflite)
    found = opened(netron, tmp_path / "out.tflite")
    assert found["format"] == "TensorFlow Lite v3"
    (graph,) = found["graphs"]
    (node,) = graph["nodes"]
    assert node["type"] == "NeutronGraph"
    assert node["attributes"] == {
        "calls": str(sum(kernel.calls for kernel in program.report.kernels)),
        "converter": f"OpenNeutron {on.__version__}",
        "format_version": "1",
        "kernels_bytes": "4",
        "microcode_bytes": str(totals.microcode_bytes),
        "prefetch_bytes": "0",
        "scratch_bytes": str(totals.scratch_bytes),
        "state_bytes": "0",
        "target": "imxrt700",
        "weights_bytes": str(totals.weight_bytes),
    }
    by_name = {name.split("\n")[0]: (kind, constant) for _, name, kind, constant in node["inputs"]}
    assert list(by_name) == ["image", "neutron_0_microcode", "neutron_0_weights", "neutron_0_kernels"]
    assert [constant for _, constant in by_name.values()] == [False, True, True, True]
    assert (
        by_name["image"][0] == "int8[1,8,8,3]"
        and by_name["neutron_0_microcode"][0] == f"uint8[{totals.microcode_bytes}]"
    )
    assert [one[1].split("\n")[0] for one in node["outputs"]] == ["scores", "neutron_0_scratch"]
    assert [one[1].split("\n")[0] for one in graph["outputs"]] == ["scores"]


def test_what_stays_on_the_cpu_keeps_its_options(netron: Path, tmp_path: Path) -> None:
    (tmp_path / "out.tflite").write_bytes(on.compile(tiny.sandwich()).tflite)
    (tmp_path / "source.tflite").write_bytes(tiny.sandwich())
    ours, source = (opened(netron, tmp_path / f"{name}.tflite")["graphs"][0]["nodes"] for name in ("out", "source"))
    kept = [node for node in ours if node["type"] != "NeutronGraph"]
    assert kept and len(kept) < len(ours)
    assert all({"type": node["type"], "attributes": node["attributes"]} in [
        {"type": one["type"], "attributes": one["attributes"]} for one in source
    ] for node in kept)  # fmt: skip
