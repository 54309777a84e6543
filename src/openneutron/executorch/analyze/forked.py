"""Independent pieces of work in forked processes: everything that was made before is there, and results come in order.

Example:
    >>> list(each(lambda at: measure(candidates[at]), len(candidates), workers=2))
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from openneutron.errors import OpenNeutronError, OptionError

T = TypeVar("T")
# What a forked process finds: the work, which need not be picklable. Results must be.
_inherited: dict[str, Callable[[int], Any]] = {}


def each(work: Callable[[int], T], count: int, workers: int) -> Iterator[T]:
    """`work` of 0, 1, … in this order, by so many processes; by this one if that is 1.

    A piece that fails there is done again here, so that its error is raised where it is met.
    """
    if min(workers, count) < 2:
        yield from map(work, range(count))
        return
    if "fork" not in multiprocessing.get_all_start_methods():
        raise OptionError("several workers need a system that can fork", hint="leave --workers out")
    _inherited["work"] = work
    pool = ProcessPoolExecutor(min(workers, count), mp_context=multiprocessing.get_context("fork"))
    try:
        for at, future in enumerate([pool.submit(_done, at) for at in range(count)]):
            found = future.result()
            yield work(at) if found is None else found[0]
    except BrokenProcessPool:
        raise OptionError("a worker ended", hint="it may have run out of memory: try fewer --workers") from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        _inherited.clear()


def _done(at: int) -> tuple[Any] | None:
    try:
        return (_inherited["work"](at),)
    except OpenNeutronError:  # some have arguments of their own, and do not travel
        return None
