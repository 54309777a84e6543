"""Timing that survives a busy machine: contestants take turns, and the medians are compared."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence


def interleaved(contestants: dict[str, Callable[[], object]], runs: int) -> dict[str, float]:
    """Median seconds of each contestant; they run one after the other, `runs` rounds after one that is not counted.

    Example:
        >>> interleaved({"ours": ours, "theirs": theirs}, runs=5)
        {'ours': 0.21, 'theirs': 0.35}
    """
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(runs + 1):
        for name, run in contestants.items():
            began = time.perf_counter()
            run()
            if turn:
                seconds[name].append(time.perf_counter() - began)
    return {name: statistics.median(taken) for name, taken in seconds.items()}


def command(words: Sequence[str]) -> Callable[[], None]:
    """A process as a contestant; it may keep its bytecode, as an installed program does, whatever this shell says."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = os.path.join(tempfile.gettempdir(), f"openneutron-bench-{os.getuid()}")

    def run() -> None:
        done = subprocess.run(list(words), env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{words[0]} failed: {(done.stderr or done.stdout).strip()[-500:]}")

    return run
