"""Many samples at once: threads that each have a runner of their own take one sample after the other.

Results are those of one runner, in the order of the samples; what keeps state hears them in that order, from one runner.

Example:
    >>> crew = Crew(lambda: runner_of(data, "model.tflite"))
    >>> [scores for (scores,) in crew.run([(image,) for image in images], threads=2)]
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

from openneutron.errors import OpenNeutronError
from openneutron.records import dataclass, field

Sample = Sequence[Any]
Outputs = tuple[Any, ...]

# Samples for each thread: loading another copy of a program takes as long as some twenty runs of it.
_WORTH: Final = 16


class Runner(Protocol):
    """A loaded program: inputs in, outputs out, one run at a time."""

    def __call__(self, *inputs: Any) -> Outputs: ...

    def many(self, samples: Sequence[Sample], *, threads: int) -> list[Outputs]:
        """Outputs of samples up to the first that has to be run alone; none where all have to be."""

    @property
    def keeps_state(self) -> bool:
        """Whether a run depends on those before it."""

    def beside_others(self) -> AbstractContextManager[None]:
        """Entered by a thread that loads and runs such a program while others do the same with theirs."""


@dataclass
class _Job:
    samples: Sequence[Sample]
    results: list[Outputs]
    lock: threading.Lock = field(default_factory=threading.Lock)
    taken: int = 0
    failures: list[tuple[int, BaseException]] = field(default_factory=list)

    def take(self) -> int | None:
        """The next sample in order; none once one has failed."""
        with self.lock:
            if self.failures or self.taken == len(self.samples):
                return None
            self.taken += 1
            return self.taken - 1


class Crew:
    """Runners of one program: `first`, and more where several threads are asked for, kept for the next time."""

    def __init__(self, make: Callable[[], Runner], first: Runner | None = None) -> None:
        self._make = make
        self.first = make() if first is None else first
        self._others: list[Runner | None] = []

    def run(self, samples: Sequence[Sample], *, threads: int) -> list[Outputs]:
        """Outputs of every sample, in their order; an error names the first sample that has one."""
        count = 1 if self.first.keeps_state else min(threads, len(samples) // _WORTH)
        found = self._together(samples, count)
        job = _Job(samples, [*found, *([()] * (len(samples) - len(found)))], taken=len(found))
        if count < 2 or len(found) == len(samples):
            _work(self.first, job)
        else:
            self._share(job, count)
        if job.failures:
            at, error = min(job.failures, key=lambda one: one[0])
            raise _named(error, at)
        return job.results

    def _together(self, samples: Sequence[Sample], count: int) -> list[Outputs]:
        """What the program makes of many samples at once; an error among them shows when its sample is run alone."""
        if count < 1 or self.first.keeps_state:
            return []
        try:
            return self.first.many(samples, threads=count)
        except OpenNeutronError:
            return []

    def _share(self, job: _Job, count: int) -> None:
        self._others += [None] * (count - len(self._others))
        helpers = [threading.Thread(target=self._take_part, args=(job, at)) for at in range(1, count)]
        for helper in helpers:
            helper.start()
        try:
            self._take_part(job, 0)
        finally:
            for helper in helpers:
                helper.join()

    def _take_part(self, job: _Job, number: int) -> None:
        with self.first.beside_others():
            try:
                runner = self._others[number] or self._make()
                self._others[number] = runner
            except OpenNeutronError:
                if number:  # no memory for another copy, say: the others do its part
                    return
                runner = self.first
            _work(runner, job)


def _work(runner: Runner, job: _Job) -> None:
    while (at := job.take()) is not None:
        try:
            job.results[at] = runner(*job.samples[at])
        except BaseException as error:  # raised again by who asked, with those of other threads
            with job.lock:
                job.failures.append((at, error))


def _named(error: BaseException, at: int) -> BaseException:
    """The error with the sample's number; what is not ours stays as it is."""
    if isinstance(error, OpenNeutronError):
        error.where = f"{error.where}, sample {at}" if error.where else f"sample {at}"
    return error
