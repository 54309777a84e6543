"""Limit the time of a task: raise an exception in its thread; if that has no effect, end the worker.

Example:
    >>> with time_limit(600.0):
    ...     program = compile(model)
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# What a task may take to unwind. Python raises between two of its own steps; a call into C that hangs never comes back.
GRACE_SECONDS = 20.0
LATE = 124  # the exit code that timeout(1) has made known


class TimeLimit(BaseException):
    """The task takes too long. Not an `Exception`, so that no library catches it."""


@contextmanager
def time_limit(seconds: float, *, end_process: bool = False) -> Iterator[None]:
    """Raise `TimeLimit` in this thread after `seconds`; 0 is no limit.

    With `end_process`, in a worker, the process ends `GRACE_SECONDS` later if the task is still there.
    """
    if not seconds:
        yield
        return
    thread, lock, over = threading.get_ident(), threading.Lock(), False

    def interrupt() -> None:
        with lock:
            if not over:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(TimeLimit))

    timers = [threading.Timer(seconds, interrupt)]
    if end_process:
        timers.append(threading.Timer(seconds + GRACE_SECONDS, os._exit, (LATE,)))
    for timer in timers:
        timer.daemon = True
        timer.start()
    try:
        yield
    finally:
        try:
            with lock:
                over = True
            for _ in range(2):  # Python raises what was asked for at the end of a turn of a loop: here at the latest
                pass
        finally:
            over = True
            for timer in timers:
                timer.cancel()
