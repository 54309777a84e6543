"""Run tasks one after another in this process, without Dask.

Example:
    >>> for at, outcome in run(tasks, seconds=600.0, report=True):
    ...     print(at, outcome.row["status"])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from openneutron.executorch.capture.sources import find
from openneutron.files import read_file
from openneutron.sweeps.plan import Model
from openneutron.sweeps.task import Outcome, Shared, Work, measure, prepare


@dataclass(frozen=True)
class Task:
    """One variant to measure: its key in the store, and the group whose quantized program it shares."""

    key: str
    group: str
    work: Work
    options: dict[str, Any]


def run(tasks: Sequence[Task], *, seconds: float, report: bool) -> Iterator[tuple[int, Outcome]]:
    """Yield each task's number and outcome, in order. Quantized programs are released after their last use."""
    last = {task.group: number for number, task in enumerate(tasks)}
    shared: dict[str, Shared] = {}
    for number, task in enumerate(tasks):
        if task.group not in shared:
            shared[task.group] = prepare(task.work, seconds)
        yield number, measure(shared[task.group], task.options, seconds, report=report)
        if last[task.group] == number:
            del shared[task.group]


def content_of(model: Model) -> bytes:
    """Return the bytes of a model's file; b"" for the zoo and for factories, which workers have installed."""
    return b"" if find(model.source).kind in ("zoo", "factory") else read_file(model.source)
