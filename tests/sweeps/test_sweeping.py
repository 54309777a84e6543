from __future__ import annotations

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
