"""Statistics of every float tensor of a LiteRT model over samples.

For the process that quantizes: LiteRT runs here, without protection from a model that makes it crash.

Example:
    >>> seen = watch(data, samples)
    >>> seen["conv"].low.min(), seen["conv"].high.max()
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
# Times the range of a sample on average. 1.0 and 0.85 were worse for face detection, face mesh and iris landmarks.
_MARGIN = 1.15
_MASKED = 3e38  # infinity and what is next to it mask values out: no range has them


@dataclass
class Seen:
    """Values of a tensor by the index of its last axis: lowest, highest and mean, and the ends of a sample on average."""

    low: Array
    high: Array
    mean: Array
    usual_low: Array
    usual_high: Array

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest value of all."""
        return float(self.low.min()), float(self.high.max())

    @property
    def usual_range(self) -> tuple[float, float]:
        """What samples have on average, with a margin, and no more than any sample has."""
        low, high = self.range
        return max(low, _MARGIN * float(self.usual_low.min())), min(high, _MARGIN * float(self.usual_high.max()))

    @property
    def peak(self) -> Array:
        """The largest absolute value of each channel."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def divide(self, units: Array) -> Seen:
        """Return the statistics of the tensor with each channel divided by a positive number."""
        return Seen(
            self.low / units, self.high / units, self.mean / units, self.usual_low / units, self.usual_high / units
        )  # fmt: skip


def watch(data: bytes, samples: Sequence[Sequence[Array]]) -> dict[str, Seen]:
    """Return what the float tensors of a model's main graph hold on samples, by name."""
    session = Watched(data)
    seen: dict[str, Seen] = {}
    for number, sample in enumerate(samples):
        add_seen(seen, session.run(sample), number)
    return seen


def add_seen(seen: dict[str, Seen], values: Mapping[str, Array], count: int) -> None:
    """Add the tensors of one more sample to the statistics of `count`."""
    for name, value in values.items():
        found = _read_seen(value)
        seen[name] = _join(seen[name], found, count) if name in seen else found


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
    low, high = rows.min(0), rows.max(0)
    return Seen(low, high, rows.mean(0), low, high)


def _join(one: Seen, other: Seen, count: int) -> Seen:
    """Return the statistics of `count` samples and one more."""
    pairs = (
        (one.mean, other.mean),
        (one.usual_low, other.usual_low),
        (one.usual_high, other.usual_high),
    )
    averages = [(a * count + b) / (count + 1) for a, b in pairs]
    return Seen(np.minimum(one.low, other.low), np.maximum(one.high, other.high), *averages)
