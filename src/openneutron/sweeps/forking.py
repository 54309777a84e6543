"""Start a fork server that has imported torch and ExecuTorch, so that each worker starts in milliseconds.

Example:
    >>> with fork_server(TORCH, {"OMP_NUM_THREADS": "1"}) as method:  # a second process imports while this one goes on
    ...     dask.config.set({"distributed.worker.multiprocessing-method": method})
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.forkserver
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from openneutron.executorch.capture.sources import find

# What the server imports: for LiteRT files alone, or for networks that come from PyTorch and ONNX as well.
LITERT: Final = "openneutron.sweeps.preload.litert"
TORCH: Final = "openneutron.sweeps.preload.torch"
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OPENNEUTRON_THREADS")
# Python has one server for the whole process. This is the environment that ours was started in.
_running: list[dict[str, str]] = []


def preload_for(sources: Iterable[str]) -> str:
    """Return the module that workers must have imported to compile these models."""
    return LITERT if all(find(source).kind == "tflite" for source in sources) else TORCH


def threads_for(workers: int) -> dict[str, str]:
    """Return environment variables that divide the cores among the threads of all workers."""
    return dict.fromkeys(_THREADS, str(max(1, (os.cpu_count() or 1) // max(1, workers))))


def start_ahead(sources: Iterable[str], workers: int | None) -> None:
    """Start the server early, so that it imports while this process plans; one worker needs no server.

    Example:
        >>> start_ahead(["cifarnet"], workers=2)
    """
    count = workers or os.cpu_count() or 1
    if count > 1:
        with fork_server(preload_for(sources), threads_for(count)):
            pass


@contextmanager
def fork_server(preload: str, environment: Mapping[str, str]) -> Iterator[str]:
    """Start the server, which imports `preload`; return the name of the start method for `multiprocessing`.

    Libraries read `environment` when they are loaded, so it is there before the server starts and until the block ends.
    Variables that the user has set stay as they are.
    """
    wanted = {name: os.environ.get(name, value) for name, value in environment.items()}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield _method(preload, wanted)
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _method(preload: str, environment: dict[str, str]) -> str:
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return "spawn"
    if not _running:
        multiprocessing.get_context("forkserver").set_forkserver_preload([preload])
        multiprocessing.forkserver.ensure_running()
        _running.append(environment)
    # A server that was started for another number of threads would pass that on.
    return "forkserver" if _running[0] == environment else "spawn"
