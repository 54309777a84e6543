from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

from openneutron.cli.inputs.blocks import blocks_of_file
from openneutron.litert import DType, GraphBuilder, write_model
from tests.cli.conftest import Command


def test_a_compile_can_be_certified(folder: Path, command: Command) -> None:
    assert command("compile", "convnet.tflite", "-o", "out.tflite", "--certificate", "proof.json").code == 0
    outcome = command("certify", "out.tflite", "convnet.tflite")
    assert outcome.code == 0 and "out.tflite: proved against convnet.tflite" in outcome.out
    found = json.loads(command("certify", "out.tflite", "convnet.tflite", "--certificate", "proof.json", "--json").out)
    assert found["proved"] and found["calls"] > 0 and found["graphs"] == 1


def test_every_command_counts_the_same_calls(folder: Path, command: Command) -> None:
    """Streamed pools: the loop's first and last rounds hold calls without rows, which nobody counts."""
    g = GraphBuilder()
    tensors = [g.tensor(f"t{at}", (1, 48, 48, 16), DType.INT8, scale=0.1, zero_point=0) for at in range(4)]
    for source, made in itertools.pairwise(tensors):
        g.op("MAX_POOL_2D", [source], [made], padding="SAME", stride_w=1, stride_h=1, filter_width=3, filter_height=3)
    Path("pools.tflite").write_bytes(write_model(g.finish(tensors[:1], tensors[-1:])))
    report = json.loads(command("compile", "pools.tflite", "-o", "out.tflite", "--json").out)
    (graph,) = json.loads(command("inspect", "out.tflite", "--json").out)["graphs"]
    proof = json.loads(command("certify", "out.tflite", "pools.tflite", "--json").out)
    calls = sum(kernel["calls"] for kernel in report["kernels"])
    assert calls == graph["calls"] == sum(graph["kernels"].values()) == proof["calls"] and proof["copies"] == 0
    (code,) = [blocks.program() for blocks in blocks_of_file(Path("out.tflite").read_bytes(), "out.tflite")]
    assert code.call_count > calls, "nothing was clipped: the model no longer shows the difference"


def test_a_file_of_another_source_is_refused(folder: Path, command: Command) -> None:
    command("compile", "convnet.tflite", "-o", "out.tflite", "--certificate", "proof.json")
    command("compile", "convnet.tflite", "-o", "other.tflite", "--target", "mcxn94x")
    outcome = command("certify", "other.tflite", "convnet.tflite", "--certificate", "proof.json")
    assert outcome.code == 1 and "refused" in outcome.err and "another compiled file" in outcome.err
    outcome = command("certify", "out.tflite", "out.tflite")
    assert outcome.code == 1 and "the source is a compiled model itself" in outcome.err


def test_a_changed_file_is_refused(folder: Path, command: Command) -> None:
    command("compile", "convnet.tflite", "-o", "out.tflite")
    data = bytearray(Path("out.tflite").read_bytes())
    data[data.find(b"imxrt700") + 200] ^= 1
    Path("out.tflite").write_bytes(data)
    outcome = command("certify", "out.tflite", "convnet.tflite")
    assert outcome.code == 1 and outcome.err.startswith("openneutron: out.tflite: refused:")
    outcome = command("certify", "out.tflite", "convnet.tflite", "--json")
    assert (outcome.code, outcome.err) == (1, "") and json.loads(outcome.out)["refused"]


def test_a_bundle_stands_for_its_litert_model(folder: Path, command: Command) -> None:
    command("compile", "convnet.tflite", "-o", "out.tflite")
    Path("out.debug").mkdir()
    Path("out.debug/model.tflite").write_bytes(Path("convnet.tflite").read_bytes())
    assert command("certify", "out.tflite").code == command("certify", "out.tflite", "out.debug").code == 0


def test_what_cannot_be_certified(folder: Path, command: Command, refused: Callable[..., str]) -> None:
    command("compile", "convnet.tflite", "-o", "out.tflite")
    Path("text.json").write_text("{")
    outcome = command("certify", "out.tflite", "convnet.tflite", "--certificate", "text.json")
    assert outcome.code == 1 and "no JSON" in outcome.err
    assert "no such file" in refused("certify", "none.tflite", "convnet.tflite")
    assert "needs its source" in refused("certify", "out.tflite")
    Path("model.onnx").write_bytes(bytes([8, 7, 0x12, 0, 0, 0, 0, 0]))
    said = refused("certify", "out.tflite", "model.onnx")
    assert "the LiteRT model that it was made from, and this is none" in said and "out.debug/model.tflite" in said
    assert "certificate is for LiteRT models" in refused("compile", "cifarnet", "--certificate", "proof.json")
    assert ".json" in refused("compile", "convnet.tflite", "--certificate", "proof.txt")
