"""Timing on a busy machine: contestants take turns, and medians are compared."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

TURN_SECONDS = 0.002  # long against the clock's resolution and a call's own overhead, short against a neighbour's burst


def interleaved(contestants: dict[str, Callable[[], object]], runs: int) -> dict[str, float]:
    """Return the median seconds of each contestant; they run in turn for `runs` rounds after an uncounted one.

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


@dataclass(frozen=True)
class Times:
    """Seconds per call of one contestant, round by round."""

    rounds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle of all rounds."""
        return statistics.median(self.rounds)


def ratio(peer: Times, own: Times) -> float:
    """Return how many times faster `own` is: the median over rounds, because a busy neighbour slows both sides of a round.

    Example:
        >>> ratio(times["theirs"], times["ours"])
        1.31
    """
    return statistics.median(theirs / ours for theirs, ours in zip(peer.rounds, own.rounds, strict=True))


def rounds(contestants: dict[str, Callable[[], object]], seconds: float) -> dict[str, Times]:
    """Return the times of short functions, interleaved: in each round every contestant repeats for about TURN_SECONDS.

    Rounds go on until `seconds` have passed, and at least five times. The first call of each turn is not counted: it finds
    caches that another contestant filled.

    Example:
        >>> times = rounds({"ours": ours, "theirs": theirs}, seconds=2.0)
        >>> ratio(times["theirs"], times["ours"])
    """
    repeats = {name: _repeats(run) for name, run in contestants.items()}
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or min(map(len, taken.values())) < 5:
        for name, run in contestants.items():
            run()
            began = time.perf_counter()
            for _ in range(repeats[name]):
                run()
            taken[name].append((time.perf_counter() - began) / repeats[name])
    return {name: Times(tuple(all_)) for name, all_ in taken.items()}


def _repeats(run: Callable[[], object]) -> int:
    """Return how often a contestant fits into a turn."""
    run()
    began = time.perf_counter()
    run()
    return max(1, round(TURN_SECONDS / max(time.perf_counter() - began, 1e-7)))


def command(words: Sequence[str]) -> Callable[[], None]:
    """Return a process as a contestant; it may keep its bytecode, as an installed program does."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = os.path.join(tempfile.gettempdir(), f"openneutron-bench-{os.getuid()}")

    def run() -> None:
        done = subprocess.run(list(words), env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{words[0]} failed: {(done.stderr or done.stdout).strip()[-500:]}")

    return run
