"""Read the environment variables OPENNEUTRON_TIMEOUT, OPENNEUTRON_MEMORY and OPENNEUTRON_THREADS, as the driver does.

Example:
    >>> timeout(default=60)
    60
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from openneutron.errors import RuntimeFailure

TIMEOUT, MEMORY, THREADS = "OPENNEUTRON_TIMEOUT", "OPENNEUTRON_MEMORY", "OPENNEUTRON_THREADS"
MOST_THREADS = 16  # ND_MAX_THREADS of the driver


def timeout(default: int) -> int:
    """Return the time limit of a run in seconds; 0: unlimited."""
    return _number(TIMEOUT, "seconds", default)


def memory(default: int) -> int:
    """Return the memory limit of a run in bytes; 0: unlimited."""
    return _number(MEMORY, "bytes", default)


def threads() -> int:
    """Return the number of threads for parallel work: OPENNEUTRON_THREADS, else the processors this process may use."""
    found = _number(THREADS, "threads", 0) if os.environ.get(THREADS) else min(_processors(), MOST_THREADS)
    if not 1 <= found <= MOST_THREADS:
        raise RuntimeFailure(f"{THREADS} is not from 1 to {MOST_THREADS}", hint="leave it out")
    return found


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def timeout_of(seconds: int | None) -> Iterator[None]:
    """Set the time limit of all runs inside the block, in seconds; None leaves it as it is.

    Example:
        >>> with timeout_of(5):
        ...     runner.run(inputs)
    """
    before = os.environ.get(TIMEOUT)
    if seconds is not None:
        os.environ[TIMEOUT] = str(seconds)
    try:
        yield
    finally:
        if seconds is not None:
            os.environ.pop(TIMEOUT)
            os.environ.update({TIMEOUT: before} if before is not None else {})


def _number(name: str, unit: str, default: int) -> int:
    text = os.environ.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit()):
        raise RuntimeFailure(f"{name} is not a number of {unit}", hint="0 lifts the limit")
    return int(text)
