from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import openneutron
from openneutron.errors import OptionError
from openneutron.sweeps import serial
from openneutron.sweeps.results import Sweep

MODELS = ["convnet.tflite", "broken.tflite", "sandwich.tflite"]


def _sweep(folder: str, **more: object) -> Sweep:
    return openneutron.sweep(MODELS, folder=folder, workers=1, target=["imxrt700", "mcxn94x"], fit=["none", 10], **more)


def test_rows_in_the_order_of_the_grid_with_their_reports(folder: Path) -> None:
    found = _sweep("out")
    assert [(row["model"], row["target"], row["fit_bytes"]) for row in found[:2]] == [
        ("convnet.tflite", "imxrt700", None), ("convnet.tflite", "imxrt700", 10),
    ]  # fmt: skip
    assert [row["status"] for row in found[:8]] == ["ok", "failed", "ok", "failed", *["failed"] * 4]
    assert all((Path("out") / row["report"]).is_file() for row in found if row["status"] == "ok")
    assert all(row["reason"] for row in found if row["status"] != "ok") and not found.ok


def test_a_killed_client_goes_on_with_what_is_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _sweep("whole")
    real = serial.measure
    done = []

    def killed(*arguments: object, **more: object) -> object:
        if len(done) == 5:
            raise KeyboardInterrupt
        done.append(arguments)
        return real(*arguments, **more)

    monkeypatch.setattr(serial, "measure", killed)
    with pytest.raises(KeyboardInterrupt):
        _sweep("part")
    done.clear()
    monkeypatch.setattr(serial, "measure", lambda *a, **m: done.append(a) or real(*a, **m))
    resumed = _sweep("part")
    assert resumed.known == 5 and len(done) == 7
    assert list(resumed) == list(whole)
    for name in ("results.csv", "results.jsonl", "index.html"):
        assert Path("part", name).read_bytes() == Path("whole", name).read_bytes()
    assert _sweep("part").known == 12 and _sweep("part", fresh=True).known == 0


def test_what_did_not_last_is_tried_again(folder: Path) -> None:
    late = openneutron.sweep("convnet.tflite", folder="out", workers=1, timeout=1e-4)
    assert late[0]["status"] == "timeout"
    assert openneutron.sweep("convnet.tflite", folder="out", workers=1).ok


@pytest.mark.parametrize(("more", "message"), [({"workers": 0}, "workers is 0"), ({"timeout": -1.0}, "timeout is -1")])
def test_wrong_numbers(folder: Path, more: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        openneutron.sweep("convnet.tflite", **more)


# Labelled data that hold a worker up from the fourth variant on, as long as a file is there.
HOLDING = """
import pathlib, time
import numpy as np

def samples():
    pathlib.Path(f"asked-{time.monotonic_ns()}").touch()
    while pathlib.Path("hold").exists() and len(list(pathlib.Path().glob("asked-*"))) > 3:
        time.sleep(0.01)
    rng = np.random.default_rng(0)
    for at in range(4):
        yield rng.uniform(-1, 1, (8, 8, 3)).astype(np.float32), at
"""


def test_a_client_is_killed_and_another_goes_on(folder: Path) -> None:
    Path("own_samples.py").write_text(HOLDING)
    Path("hold").touch()
    grid = ["--target", "imxrt700,mcxn94x,imx95", "--fit", "none,4K,10", "--data", "own_samples:samples"]
    words = [sys.executable, "-m", "openneutron", "sweep", "convnet.tflite", *grid, "-o", "part", "--workers"]
    client = subprocess.Popen([*words, "2"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while len(list(Path("part").glob("store/*/*.json"))) < 3 and client.poll() is None:
        time.sleep(0.01)
    client.kill()
    assert client.wait() == -signal.SIGKILL, "it was done before it could be killed"
    Path("hold").unlink()
    options: dict[str, object] = {"target": ["imxrt700", "mcxn94x", "imx95"], "fit": ["none", "4K", 10]}
    model = {"source": "convnet.tflite", "data": "own_samples:samples"}
    resumed = openneutron.sweep(model, folder="part", workers=2, **options)
    alone = openneutron.sweep(model, folder="alone", workers=1, **options)
    assert 3 <= resumed.known < 9 and alone.known == 0 and len(alone) == 9
    assert list(resumed) == list(alone) and {row["samples"] for row in alone} == {4, None}
    for name in ("results.csv", "results.jsonl", "index.html", *(row["report"] for row in alone if row["report"])):
        assert Path("part", name).read_bytes() == Path("alone", name).read_bytes()


def test_a_full_disk_is_named_and_the_rest_goes_on(folder: Path) -> None:
    words = "-m openneutron sweep convnet.tflite --target imxrt700,mcxn94x --workers 1 -o out"
    limited = f"ulimit -f 1; exec {sys.executable} {words}"  # files of at most 1 KiB
    done = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "2 of 2 variants ok" in done.stdout
    assert done.stderr.count("\n") == 1 and "cannot be written" in done.stderr and "2 more files" in done.stderr
    assert not list(Path("out").rglob(".*")), "nothing half-written"


def test_a_factory_that_raises_for_some_arguments(folder: Path) -> None:
    Path("own_widths.py").write_text(
        "import torch\n"
        "def make(width):\n"
        "    if width > 4:\n"
        "        raise ValueError('too wide')\n"
        "    inputs = [(torch.randn(1, 3),) for _ in range(2)]\n"
        "    return torch.nn.Linear(3, width).eval(), inputs[0], inputs\n"
    )
    model = {"source": "own_widths:make", "arguments": {"width": [2, 9, 4]}}
    found = openneutron.sweep(model, folder="out", workers=1, reports=False)
    assert [(row["argument_width"], row["status"]) for row in found] == [(2, "ok"), (9, "failed"), (4, "ok")]
    assert "ValueError: too wide" in found[1]["reason"] and "argument_width" in found.axes and not found.ok
