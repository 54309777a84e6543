from __future__ import annotations

import contextlib
import subprocess
import sys

import pytest

from openneutron.sweeps.limit import LATE, TimeLimit, time_limit
from tests.work import calls


def _forever() -> None:
    while True:
        sum(range(100))


def test_a_task_that_takes_too_long_is_interrupted() -> None:
    with pytest.raises(TimeLimit), time_limit(0.05):
        _forever()


def test_a_task_in_time_is_left_alone() -> None:
    with time_limit(60.0):
        pass
    with time_limit(0):
        pass


def test_a_worker_that_hangs_in_c_ends() -> None:
    code = """
import time
from openneutron.sweeps import limit
limit.GRACE_SECONDS = 0.1
with limit.time_limit(0.1, end_process=True):
    time.sleep(100)
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=600, check=False).returncode == LATE


def test_nothing_is_left_behind_the_block() -> None:
    """A profiler sees every call: one that Python interrupts for ever would never begin."""
    for seconds in (60.0, 1e-6):
        with contextlib.suppress(TimeLimit), time_limit(seconds):
            pass
    assert calls(lambda: sorted([2, 1])) == 2
