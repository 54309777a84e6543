from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.streaming import streaming_convnet


def test_an_uncompiled_model_is_profiled_by_layer(command, folder: Path) -> None:
    outcome = command("profile", "convnet.tflite", "--trace", "t.json")
    assert outcome.code == 0
    assert "logits" in outcome.out and "at 324 MHz on imxrt700" in outcome.out
    events = json.loads((folder / "t.json").read_text())["traceEvents"]
    assert {event["name"] for event in events if event["ph"] == "X"} >= {"conv2d", "softmax"}


def test_a_compiled_model_gives_the_cycles_of_its_compile(command, folder: Path) -> None:
    predicted = json.loads(command("compile", "convnet.tflite", "-o", "out.tflite", "--target", "imx95", "--json").out)
    measured = json.loads(command("profile", "out.tflite", "--json").out)
    assert measured["target"] == "imx95"
    assert measured["totals"]["cycles"] == predicted["totals"]["cycles"]
    assert command("profile", "out.tflite", "--top", 1).out.count("\n  and ") == 1


def test_copies_have_a_lane_and_the_array_s_waiting_is_said(command, folder: Path) -> None:
    command("compile", "convnet.tflite", "-o", "out.tflite", "--target", "mcxn94x", "--fetch-constants-to-sram")
    outcome = command("profile", "out.tflite", "--trace", "t.json")
    rows = json.loads((folder / "t.json").read_text())["traceEvents"]
    lanes = {row["tid"]: row["args"]["name"] for row in rows if row["name"] == "thread_name"}
    spent = {
        lane: sum(row["args"]["cycles"] for row in rows if row.get("tid") == tid and row["ph"] == "X")
        for tid, lane in lanes.items()
    }
    assert set(lanes.values()) == {"array (compute)", "copies (DMA)"} and all(spent.values())
    cycles = json.loads(command("profile", "out.tflite", "--json").out)["totals"]["cycles"]
    assert f"{cycles - spent['array (compute)']:,} cycles of waiting for copies" in " ".join(outcome.out.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["floats.tflite"], "nothing of it runs on the NPU"),
        (["gone.pte"], "no such file"),
        (["noise.bin"], "no .pte, no .tflite"),
        (["convnet.tflite", "--trace", "t.txt"], "must end in .json"),
        (["convnet.tflite", "--target", "imx"], "unknown target 'imx'"),
        (["convnet.tflite", "--top", "0"], "Invalid value for '--top'"),
    ],
    ids=["nothing to profile", "missing", "noise", "trace", "target", "top"],
)
def test_what_cannot_be_profiled_is_refused(refused, folder: Path, arguments: list[str], message: str) -> None:
    (folder / "noise.bin").write_bytes(b"noise" * 9)
    assert message in refused("profile", *arguments)


def test_a_stream_costs_its_frames(command, folder: Path) -> None:
    Path("wake.tflite").write_bytes(streaming_convnet())
    np.savez("frames.npz", frame=np.zeros((7, 1, 1, 1, 4), np.int8))
    one = json.loads(command("profile", "wake.tflite", "--json").out)
    found = json.loads(command("profile", "wake.tflite", "--stream", "frames.npz", "--json").out)
    assert f"7 frames take {7 * one['totals']['cycles']:,} cycles" in found["notes"][-1]
    assert found["totals"] == one["totals"]
    np.savez("frames.npz", frame=np.zeros((7, 1, 1, 1, 5), np.int8))
    assert command("profile", "wake.tflite", "--stream", "frames.npz").code == 2
