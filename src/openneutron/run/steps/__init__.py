"""Parts of a LiteRT model and who runs them: one file for each engine."""

from __future__ import annotations

from typing import Any, Protocol

import numpy.typing as npt

Array = npt.NDArray[Any]


class Step(Protocol):
    """Part of a model: reads and writes the values of tensors by index, returns the cycles it took."""

    @property
    def keeps_state(self) -> bool:
        """Whether a run depends on those before it."""

    def run(self, values: dict[int, Array]) -> int: ...

    def reset(self) -> None:
        """Forget what earlier runs left."""
