from __future__ import annotations

from pathlib import Path

import pytest

from openneutron.sweeps import serial
from openneutron.sweeps.plan import Model
from openneutron.sweeps.serial import Task, content_of, run
from openneutron.sweeps.task import Work


def test_a_group_is_prepared_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = []
    real = serial.prepare
    monkeypatch.setattr(serial, "prepare", lambda work, seconds: prepared.append(work) or real(work, seconds))
    work = Work(Model("convnet.tflite"), {})
    tasks = [Task(str(at), "group", work, {"target": name}) for at, name in enumerate(("imxrt700", "mcxn94x", "imx95"))]
    found = list(run(tasks, seconds=60.0, report=False))
    assert [at for at, _ in found] == [0, 1, 2] and all(one.row["status"] == "ok" for _, one in found)
    assert prepared == [work]


def test_only_files_have_content(folder: Path) -> None:
    assert content_of(Model("cifarnet")) == b"" and content_of(Model("convnet.tflite"))[4:8] == b"TFL3"
