"""Many samples of one model on copies of it, each on a thread of its own; no Python runs meanwhile.

Threads that take turns in Python fetch the interpreter's memory from each other, which takes longer than a small model.

Example:
    >>> copies = Copies(lambda: Simulator(*blocks))
    >>> copies.run(images, lambda some: Block(inputs_of(some), outputs_of(some), results), threads=2)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from openneutron.errors import RuntimeFailure
from openneutron.machine.simulator import Simulator, beside_others, run_each

Array = npt.NDArray[Any]
S = TypeVar("S")
R = TypeVar("R")

FIRST: Final = 32  # samples of a thread in the first call of the driver
SECONDS: Final = 0.25  # of later calls: Ctrl-C waits for the end of one


@dataclass(frozen=True)
class Block(Generic[R]):
    """Samples in memory: rows of addresses, aligned, of their inputs and outputs, and what comes of the first so many."""

    inputs: Array
    outputs: Array
    results: Callable[[int], list[R]]


class Copies:
    """Copies of a model, made when they are needed. `simulators` are those so far."""

    def __init__(self, make: Callable[[], Simulator]) -> None:
        self._make = make
        self.simulators: list[Simulator] = []

    def run(self, samples: Sequence[S], block: Callable[[Sequence[S]], Block[R]], *, threads: int) -> list[R]:
        """Results of the samples before the first that fails."""
        results: list[R] = []
        size, simulators = threads * FIRST, self.first(threads)
        while len(results) < len(samples):
            began, some = time.perf_counter(), samples[len(results) : len(results) + size]
            found = block(some)
            done = run_each(simulators, found.inputs, found.outputs)
            results += found.results(done)
            if done < len(some):
                break
            size = max(threads, int(size * min(4.0, SECONDS / (time.perf_counter() - began))))
        return results

    def first(self, count: int) -> list[Simulator]:
        """So many copies, or as many as there is memory for; at least one."""
        try:
            while len(self.simulators) < count:
                with beside_others():
                    self.simulators.append(self._make())
        except RuntimeFailure:
            if not self.simulators:
                raise
        return self.simulators[:count]


def rows_of(first: Sequence[int], apart: Sequence[int], count: int) -> Array:
    """Addresses of so many rows that lie `apart` bytes apart from the `first` on.

    Example:
        >>> rows_of([4096], [64], 3).tolist()
        [[4096], [4160], [4224]]
    """
    steps = np.arange(count, dtype=np.uint64)[:, None]
    return np.array([first], np.uint64) + steps * np.array([apart], np.uint64)
