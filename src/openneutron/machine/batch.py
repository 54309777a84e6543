"""Runs many samples of one model in one call of the driver, on copies of the model with a thread each.

Python threads would wait for each other's interpreter lock between runs, which takes longer than a small model.

Example:
    >>> copies = Copies(lambda: Simulator(*blocks, threads=1))
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
from openneutron.machine.simulator import Simulator, run_each

Array = npt.NDArray[Any]
S = TypeVar("S")
R = TypeVar("R")

FIRST: Final = 32  # samples of a thread in the first call of the driver
SECONDS: Final = 0.25  # of later calls: Ctrl-C waits for the end of one


@dataclass(frozen=True)
class Block(Generic[R]):
    """Samples in memory: one row of aligned addresses per sample for inputs and for outputs.

    `results` returns the results of the first samples, given their number.
    """

    inputs: Array
    outputs: Array
    results: Callable[[int], list[R]]


class Copies:
    """Copies of a model, prepared when they are needed; `simulators` are those prepared so far.

    `make` prepares a simulator that runs on one thread.
    """

    def __init__(self, make: Callable[[], Simulator]) -> None:
        self._make = make
        self.simulators: list[Simulator] = []

    def run(self, samples: Sequence[S], block: Callable[[Sequence[S]], Block[R]], *, threads: int) -> list[R]:
        """Return the results of the samples before the first that fails."""
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
        """Return `count` copies, or fewer if memory is short; at least one."""
        try:
            while len(self.simulators) < count:
                self.simulators.append(self._make())
        except RuntimeFailure:
            if not self.simulators:
                raise
        return self.simulators[:count]


def rows_of(first: Sequence[int], apart: Sequence[int], count: int) -> Array:
    """Return `count` rows of addresses: `first`, and then each address `apart` bytes further per row.

    Example:
        >>> rows_of([4096], [64], 3).tolist()
        [[4096], [4160], [4224]]
    """
    steps = np.arange(count, dtype=np.uint64)[:, None]
    return np.array([first], np.uint64) + steps * np.array([apart], np.uint64)
