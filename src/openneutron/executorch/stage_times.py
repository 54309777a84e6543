"""Stages of a compile: the seconds each takes, and a callback when each begins."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from openneutron.memory import trim_heap

Progress = Callable[[str], None]


@dataclass
class Stages:
    """Measures stages by name.

    Example:
        >>> stages = Stages(print)
        >>> with stages("exporting"):
        ...     exported = torch.export.export(model, inputs)
    """

    progress: Progress | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Announce a stage, and at its end add its wall time to `seconds` and return freed memory."""
        if self.progress is not None:
            self.progress(name)
        began = time.perf_counter()
        try:
            yield
        finally:
            trim_heap()
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began
