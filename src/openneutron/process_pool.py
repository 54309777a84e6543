"""Run independent pieces of work in forked processes.

Forked processes have everything that was imported and compiled before, so that `work` need not be picklable; jobs and results
must be.

Example:
    >>> list(map_in_processes(lambda at: measure(candidates[at]), range(len(candidates)), workers=2))
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from openneutron.errors import OpenNeutronError, OptionError

J = TypeVar("J")
T = TypeVar("T")
# The work of the running pool, which its processes inherit.
_inherited: dict[str, Callable[[Any], Any]] = {}


def map_in_processes(
    work: Callable[[J], T],
    jobs: Iterable[J],
    workers: int,
    *,
    initializer: Callable[[], None] | None = None,
    hint: str = "it may have run out of memory: try fewer --workers",
) -> Iterator[T]:
    """Yield `work(job)` for each job, in order, computed by `workers` processes; fewer than 2 compute in this process.

    Jobs are taken from the iterable as workers become free. A job that fails with an `OpenNeutronError` is repeated in this
    process, so that the error is raised in its place. `hint` is for a process that dies.
    """
    if workers < 2:
        yield from map(work, jobs)
        return
    if "fork" not in multiprocessing.get_all_start_methods():
        raise OptionError("several workers need a system that can fork", hint="leave --workers out")
    _inherited["work"] = work
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("fork"), initializer=initializer)
    waiting: deque[tuple[J, Future[tuple[T] | None]]] = deque()

    def take() -> T:
        job, future = waiting.popleft()
        found = future.result()
        return work(job) if found is None else found[0]

    try:
        for job in jobs:
            waiting.append((job, pool.submit(_run, job)))
            while len(waiting) > 2 * workers:
                yield take()
        while waiting:
            yield take()
    except BrokenProcessPool:
        raise OptionError("a worker ended", hint=hint) from None
    finally:
        # Waits for running jobs: a pool that is left behind complains when Python ends.
        pool.shutdown(wait=True, cancel_futures=True)
        _inherited.clear()


def _run(job: Any) -> tuple[Any] | None:
    try:
        return (_inherited["work"](job),)
    except OpenNeutronError:  # subclasses with arguments of their own cannot be pickled
        return None
