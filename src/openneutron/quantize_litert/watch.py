"""Statistics of every float tensor of a LiteRT model over samples.

For the process that quantizes: LiteRT runs here, without protection from a model that makes it crash.

Example:
    >>> watched = Watched(data)
    >>> for sample in samples:
    ...     add_seen(seen, watched.run(sample))
    >>> seen["conv"].range
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.litert.graph import DType
from openneutron.litert.read import read_model

Array = npt.NDArray[Any]
_MASKED = 1e38  # infinity and what is next to it mask values out, and a range beyond has no scale in float32


@dataclass
class Seen:
    """Values of a tensor by the index of its last axis: lowest and highest."""

    low: Array
    high: Array

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest value of all."""
        return float(self.low.min()), float(self.high.max())

    @property
    def peak(self) -> Array:
        """The largest absolute value of each channel."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def divide(self, units: Array) -> Seen:
        """Return the statistics of the tensor with each channel divided by a positive number."""
        return Seen(self.low / units, self.high / units)


def add_seen(seen: dict[str, Seen], values: Mapping[str, Array]) -> None:
    """Add the tensors of one more sample to the statistics of others."""
    for name, value in values.items():
        found = _read_seen(value)
        before = seen.get(name, found)
        seen[name] = Seen(np.minimum(before.low, found.low), np.maximum(before.high, found.high))


class Watched:
    """A LiteRT model whose inner tensors stay readable after a run."""

    def __init__(self, data: bytes) -> None:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        graph = read_model(data).main
        written = {at for op in graph.operators for at in op.outputs} | set(graph.inputs)
        self.tensors = {
            at: tensor.name
            for at, tensor in enumerate(graph.tensors)
            if at in written and tensor.dtype is DType.FLOAT32 and tensor.elements
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says that it takes memory to keep all tensors
            self._interpreter = Interpreter(
                model_content=data, num_threads=1, experimental_preserve_all_tensors=True,
                experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            )  # fmt: skip
            self._interpreter.allocate_tensors()
        self._inputs, self._outputs = graph.inputs, graph.outputs

    def run(self, sample: Sequence[Array]) -> dict[str, Array]:
        """Return all float tensors by name. The arrays are copies."""
        for at, value in zip(self._inputs, sample, strict=True):
            self._interpreter.set_tensor(at, value)
        self._interpreter.invoke()
        return {name: self._interpreter.get_tensor(at) for at, name in self.tensors.items()}

    def outputs(self) -> list[Array]:
        """Return the outputs of the last run. The arrays are copies."""
        return [self._interpreter.get_tensor(at) for at in self._outputs]


def _read_seen(value: Array) -> Seen:
    rows = value.reshape(-1, value.shape[-1] if value.ndim else 1).astype(np.float64)
    rows = np.where(np.abs(rows) < _MASKED, rows, 0.0)
    return Seen(rows.min(0), rows.max(0))
