"""Runs one program on many samples, on several threads where the driver can do that alone.

Results are those of `run` on each sample, in the order of the samples.

Example:
    >>> [scores for (scores,) in run_samples(runner, [(image,) for image in images], threads=2)]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from openneutron.errors import OpenNeutronError

Sample = Sequence[Any]
Outputs = tuple[Any, ...]

# Samples for each thread: preparing another copy of a model takes as long as some twenty runs of it.
_SAMPLES_PER_THREAD: Final = 16


class Runner(Protocol):
    """A loaded program: inputs in, outputs out, one run at a time."""

    def __call__(self, *inputs: Any) -> Outputs: ...

    def many(self, samples: Sequence[Sample], *, threads: int) -> list[Outputs]:
        """Return the outputs of the first samples, as many as the driver could run; none where it cannot run the program."""

    @property
    def keeps_state(self) -> bool:
        """Whether a run depends on those before it."""


def run_samples(runner: Runner, samples: Sequence[Sample], *, threads: int) -> list[Outputs]:
    """Return the outputs of every sample, in their order; an error names the first sample that has one."""
    results = _run_in_driver(runner, samples, min(threads, len(samples) // _SAMPLES_PER_THREAD))
    for number in range(len(results), len(samples)):
        try:
            results.append(runner(*samples[number]))
        except OpenNeutronError as error:
            error.where = f"{error.where}, sample {number}" if error.where else f"sample {number}"
            raise
    return results


def _run_in_driver(runner: Runner, samples: Sequence[Sample], threads: int) -> list[Outputs]:
    """Return the outputs of the samples before the first that fails; its error shows when it is run alone."""
    if threads < 1 or runner.keeps_state:
        return []
    try:
        return runner.many(samples, threads=threads)
    except OpenNeutronError:
        return []
