from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.streaming import running_sum


@pytest.fixture
def data(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    np.savez(folder / "d.npz", x=rng.uniform(-1, 1, (12, 8, 8, 3)).astype(np.float32), y=rng.integers(0, 5, 12))
    return folder / "d.npz"


def test_a_litert_model_answers_as_its_reference(command, data: Path) -> None:
    found = json.loads(command("evaluate", "convnet.tflite", "--data", data, "--json").out)
    assert [one["form"] for one in found] == ["reference", "compiled"]
    assert found[1]["agreement"] == 1.0 and found[0]["correct"] == found[1]["correct"]
    table = command("evaluate", "convnet.tflite", "--data", data, "--limit", 5).out
    assert "of 5" in table and "100.00%" in table


def test_shards_workers_and_a_part_that_is_missing(command, data: Path) -> None:
    one = json.loads(command("evaluate", "convnet.tflite", "--data", data, "--json", "--shard-size", 5).out)
    two = json.loads(
        command("evaluate", "convnet.tflite", "--data", data, "--json", "--shard-size", 5, "--workers", 2).out
    )
    assert [{**a, "seconds": 0} for a in one] == [{**b, "seconds": 0} for b in two]
    assert one[0]["interval"][0] < one[0]["accuracy"] < one[0]["interval"][1] and one[1]["difference"] == 0
    (data.parent / "d-0.npz").write_bytes(data.read_bytes())
    outcome = command("evaluate", "convnet.tflite", "--data", "d-{0..1}.npz", "--decide", 1)
    assert outcome.code == 1 and "left out: d-1.npz" in outcome.err and "of 12" in outcome.out


def test_a_compiled_model_is_evaluated_alone(command, data: Path) -> None:
    command("compile", "convnet.tflite", "-o", "out.tflite")
    found = json.loads(command("evaluate", "out.tflite", "--data", data, "--json").out)
    assert [(one["form"], one["total"]) for one in found] == [("compiled", 12)]


def test_a_zoo_model_brings_its_images_and_is_evaluated_in_three_forms(command) -> None:
    found = json.loads(command("evaluate", "cifarnet", "--limit", 60, "--json").out)
    assert [one["form"] for one in found] == ["float", "PT2E", ".pte"]
    assert all(one["total"] == 60 and one["accuracy"] > 0.6 for one in found)
    assert found[2]["agreement"] > 0.9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["convnet.tflite"], "--data is missing"),
        (["convnet.tflite", "--data", "gone.npz"], "no such file or folder"),
        (["convnet.tflite", "--data", "gone"], "no such file or folder"),
        (["convnet.tflite", "--data", "gone_module:samples"], "there is no module 'gone_module'"),
        (["convnet.tflite", "--data", "d.npz", "--mean", "0.5"], "--mean and --std are for folders of images"),
        (["convnet.tflite", "--data", "one.npy"], "no names instead of x and y"),
        (["convnet.tflite", "--data", "z.npz"], "the file has z instead of x and y"),
        (["sandwich.tflite", "--data", "d.npz"], "only models with one input"),
        (["gone.pte", "--data", "d.npz"], "there is no such file"),
        (["mobilenet_v2"], "no labelled test images"),
    ],
    ids=["no data", "missing", "missing folder", "missing module", "mean", "npy", "names", "inputs", "pte", "zoo"],
)
def test_what_cannot_be_evaluated_is_refused(refused, data: Path, arguments: list[str], message: str) -> None:
    np.save("one.npy", np.zeros(3))
    np.savez("z.npz", z=np.zeros(3))
    assert message in refused("evaluate", *arguments)


def test_a_folder_of_images_is_evaluated(command, folder: Path) -> None:
    from PIL import Image

    for at in range(5):
        (folder / "images" / f"class{at % 2}").mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (16, 12), (40 * at, 99, 7)).save(folder / "images" / f"class{at % 2}" / f"{at}.png")
    found = json.loads(command("evaluate", "convnet.tflite", "--data", "images", "--json").out)
    assert [(one["form"], one["total"], one["agreement"]) for one in found] == [("reference", 5, 1), ("compiled", 5, 1)]


def sequences() -> tuple[np.ndarray, np.ndarray]:
    """Sequences whose class is that of the largest sum; frames of one would decide the next if they were kept."""
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, (12, 4, 3)).astype(np.float32)
    return x, x.sum(1).argmax(1)


def test_sequences_are_heard_by_every_form_of_a_pytorch_model(command, folder: Path) -> None:
    x, y = sequences()
    np.savez("spoken.npz", x=x, y=y)
    found = json.loads(command("evaluate", "tests.cli.spotter:spotter", "--data", "spoken.npz", "--json").out)
    assert [one["form"] for one in found] == ["float", "PT2E", ".pte"]
    assert found[0]["correct"] == 12 and found[1]["correct"] == found[2]["correct"] >= 10


def test_sequences_are_heard_by_a_litert_model(command, folder: Path) -> None:
    Path("sum.tflite").write_bytes(running_sum())
    x = np.random.default_rng(2).integers(-60, 60, (20, 3, 1, 4)).astype(np.int8)
    np.savez("spoken.npz", x=x[:, :, 0], y=x.astype(int).sum(1)[:, 0].argmax(1))
    found = json.loads(command("evaluate", "sum.tflite", "--data", "spoken.npz", "--json").out)
    assert found[0]["correct"] == found[1]["correct"] >= 17 and found[1]["agreement"] == 1
