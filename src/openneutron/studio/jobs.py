"""Run the studio's work in sandboxed processes that can be cancelled.

Example:
    >>> perform = Jobs(Limits()).of(lambda: client_is_gone())
    >>> perform("fits", given, print, reads=[path], files={})
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any

from openneutron.errors import OpenNeutronError
from openneutron.sandbox.supervisor import Limits, sandbox
from openneutron.studio.api import Done
from openneutron.studio.work import PROGRESS, Stage

AT_ONCE = 2  # compiles of large models take a processor and gigabytes each
_WAIT_SECONDS = 0.1


class Cancelled(OpenNeutronError):
    """The page does not wait for this work any more."""


class Jobs:
    """Processes of one studio; more than `AT_ONCE` wait for each other."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._places = BoundedSemaphore(AT_ONCE)
        self.running = 0  # processes there are now

    def run(
        self,
        work: str,
        given: Mapping[str, Any],
        stage: Stage,
        *,
        reads: list[str],
        files: Mapping[str, bytes],
        cancelled: Callable[[], bool],
    ) -> Done:
        """Do the work; `stage` hears of its progress, and `cancelled` ends the process once it returns True."""

        def watch(folder: Path) -> None:
            if cancelled():
                raise Cancelled("cancelled")
            with contextlib.suppress(OSError):
                stage((folder / PROGRESS).read_text("utf-8", "replace")[:200])

        while not self._places.acquire(timeout=_WAIT_SECONDS):
            stage("waiting for other work to end")
            if cancelled():
                raise Cancelled("cancelled")
        try:
            self.running += 1
            request = {"work": work, "given": dict(given)}
            function = "openneutron.studio.work:serve"
            with sandbox(function, request, self._limits, files=files, reads=reads, watch=watch) as done:
                return Done(done.value, {name: done.read(name) for name in done.names()})
        finally:
            self.running -= 1
            self._places.release()


def every(seconds: float, stage: Stage) -> Stage:
    """Return a `stage` that passes on only changes, and the same text again after so many seconds: a sign of life."""
    last, said = "", 0.0

    def say(text: str) -> None:
        nonlocal last, said
        now = time.monotonic()
        if text != last or now - said > seconds:
            last, said = text, now
            stage(text)

    return say
