"""A real cluster of two processes: the same rows as without it, and a worker that dies takes nothing along."""

from __future__ import annotations

import gc
import json
import os
import signal
from pathlib import Path

import pytest

from openneutron.cli.main import run as main
from openneutron.errors import OptionError
from openneutron.sweeps import cluster, serial
from openneutron.sweeps.plan import Model
from openneutron.sweeps.serial import Task
from openneutron.sweeps.task import Outcome, Work, prepare


def _tasks() -> list[Task]:
    models = [Model("convnet.tflite"), Model("broken.tflite"), Model("sandwich.tflite")]
    return [
        Task(f"task-{model.source}-{name}-{fit}", model.source, Work(model, {}), {"target": name, "fit_bytes": fit})
        for model in models for name in ("imxrt700", "mcxn94x") for fit in (None, 4096)
    ]  # fmt: skip


def test_a_worker_is_killed_and_every_row_is_there(labelled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["evaluate", "convnet.tflite", "--data", "d-{0..1}.npz", "--json"]
    tasks = _tasks()
    alone: dict[int, Outcome] = dict(serial.run(tasks, seconds=600.0, report=True))
    found: dict[int, Outcome] = {}
    # The second client knows the cluster by its address alone, as `--scheduler tcp://…` does.
    with cluster.cluster("", 2) as local, cluster.cluster(local.scheduler.address, 0) as client:
        assert local.scheduler.address.startswith("tcp://")
        victim = next(iter(client.run(os.getpid).values()))
        for number, outcome in cluster.run(client, tasks, seconds=600.0, report=True, travel=True):
            if not found:
                os.kill(victim, signal.SIGKILL)
            found[number] = outcome
        client.wait_for_workers(2, timeout=600)  # another one comes for the dead one
        theirs = client.run(lambda: os.environ["OMP_NUM_THREADS"])
        assert all(client.run(gc.get_freeze_count).values()), "not forked from the server that has everything imported"
        assert main([*words, "--scheduler", local.scheduler.address]) == 0
        scored = json.loads(capsys.readouterr().out)
        Path("own_stream.py").write_text(
            "import numpy\ndef samples():\n    yield numpy.zeros((8, 8, 3), numpy.int8), 0\n"
        )
        generated = ["evaluate", "convnet.tflite", "--data", "own_stream:samples"]
        assert main([*generated, "--scheduler", local.scheduler.address]) == 2
        assert "a generator gives its samples here" in capsys.readouterr().err
    assert found == alone and len(found) == 12
    assert main(words) == 0
    here = json.loads(capsys.readouterr().out)
    assert [{**one, "seconds": 0} for one in scored] == [{**one, "seconds": 0} for one in here] and here[0][
        "total"
    ] == 24
    assert set(theirs.values()) == {str(max(1, (os.cpu_count() or 1) // 2))}


def test_a_scheduler_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "ANSWER_SECONDS", 0.5)
    with pytest.raises(OptionError, match="no Dask scheduler answers"), cluster.cluster("tcp://127.0.0.1:9", 1):
        pass


def test_a_worker_that_joins_later_with_another_version_makes_a_row_that_says_so(folder: Path) -> None:
    shared = prepare(Work(Model("convnet.tflite"), {}), 60.0)
    found = cluster._measure(shared, {}, 60.0, "0.0.0+other", False)
    assert found.row["status"] == "failed" and "the client 0.0.0+other" in found.row["reason"] and not found.lasting


class _Scheduler:
    address = "tcp://there"


class _Client:
    """A cluster whose one worker has another version."""

    scheduler = _Scheduler()

    def wait_for_workers(self, count: int, timeout: float) -> None:
        pass

    def run(self, function: object) -> dict[str, dict[str, str]]:
        return {"tcp://worker": {**cluster.environment(), "torch": "1.0"}}


def test_a_worker_with_other_versions_is_named() -> None:
    with pytest.raises(OptionError, match=r"tcp://worker: torch 1.0 there, .* here"):
        cluster.check_versions(_Client())
