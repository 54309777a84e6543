"""Processes of our own, and how they end."""

from __future__ import annotations

import subprocess

import pytest

from openneutron.sandbox.process import describe_end, kill, search_path, start


@pytest.mark.parametrize(
    ("status", "text"),
    [(3, "ended with status 3"), (-6, "crashed (SIGABRT)"), (-63, "crashed (signal 63)")],
)
def test_endings(status: int, text: str) -> None:
    assert describe_end(status) == text


def test_a_module_in_a_process_of_its_own() -> None:
    process = start("timeit", "-n1", "-r1", "import openneutron", more={"LANG": "C"}, stdout=subprocess.PIPE)
    assert b"1 loop" in process.communicate(timeout=600)[0] and process.returncode == 0
    endless = start("timeit", "-n1", "while True: pass")
    kill(endless)
    assert describe_end(endless.returncode) == "crashed (SIGKILL)"
    kill(endless)  # it has gone already
    assert all(path.startswith("/") for path in search_path())
