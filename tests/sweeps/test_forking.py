from __future__ import annotations

import os
from pathlib import Path

import pytest

from openneutron.sweeps import forking

THREADS = "OPENNEUTRON_THREADS"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The environment of each server that would have been started; tests/sweeps/test_cluster.py starts a real one."""
    found: list[str] = []
    monkeypatch.setattr(forking, "_running", [])
    monkeypatch.setattr(forking.multiprocessing.forkserver, "ensure_running", lambda: found.append(os.environ[THREADS]))
    monkeypatch.setattr(type(forking.multiprocessing.get_context("forkserver")), "set_forkserver_preload", _checked)
    return found


def _checked(context: object, modules: list[str]) -> None:
    assert modules == [forking.LITERT]


def test_the_server_starts_once_with_its_environment(servers: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(THREADS, raising=False)
    for _ in range(2):
        with forking.fork_server(forking.LITERT, {THREADS: "2"}) as method:
            assert method == "forkserver" and os.environ[THREADS] == "2"
        assert THREADS not in os.environ
    assert servers == ["2"]


def test_another_number_of_threads_needs_processes_of_their_own(servers: list[str]) -> None:
    with (
        forking.fork_server(forking.LITERT, {THREADS: "2"}),
        forking.fork_server(forking.LITERT, {"OTHER_THREADS": "1"}) as way,
    ):
        assert way == "spawn" and len(servers) == 1


def test_what_the_user_has_set_stays(servers: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(THREADS, "3")
    with pytest.raises(KeyboardInterrupt), forking.fork_server(forking.LITERT, {THREADS: "2"}):
        assert os.environ[THREADS] == "3"
        raise KeyboardInterrupt
    assert os.environ[THREADS] == "3" and servers == ["3"]


def test_a_system_without_fork(servers: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forking.multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    with forking.fork_server(forking.LITERT, {THREADS: "2"}) as method:
        assert method == "spawn" and not servers


def test_a_server_ahead_of_the_work_is_the_one_that_workers_find(
    servers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.delenv(THREADS, raising=False)
    Path("model.tflite").touch()
    forking.start_ahead(["model.tflite"], workers=1)
    assert not servers
    forking.start_ahead(["model.tflite"], workers=2)
    with forking.fork_server(forking.LITERT, forking.threads_for(2)) as method:
        assert method == "forkserver" and servers == ["2"]


def test_models_from_pytorch_need_torch_in_the_server() -> None:
    Path("model.tflite").touch()
    assert forking.preload_for(["model.tflite"]) == forking.LITERT
    assert forking.preload_for(["model.tflite", "cifarnet"]) == forking.TORCH
