"""What the inputs of a layer look like together: means, and the products of each two.

An error of the weights makes an error of the result that depends on these alone.

Example:
    >>> moments = LayerMoments(model.main)
    >>> moments.add({"x": array})
    >>> moments.of({})["conv"].covariance.shape
    (27, 27)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from openneutron.litert.graph import Graph, Operator
from openneutron.litert.operator_options import padding_name
from openneutron.litert.passes.channel_groups import WEIGHTED

Array = npt.NDArray[Any]

_MOST_ROWS: Final = 1024  # of a layer's inputs in one sample: neighbouring pixels say the same again
_MOST_INPUTS: Final = 2304  # of one output, 3 x 3 x 256: the work grows with the square
_MOST_BYTES: Final = 1 << 30  # of all products of a model
_DAMPING: Final = 1e-3  # of the mean power of inputs, added to each: samples do not show all that inputs can do


@dataclass
class Moments:
    """Sums over what a layer's outputs are computed from: their number, the values, and the products of each two.

    A depthwise layer has a row for each channel. Layers with too many inputs have no products.
    """

    count: int
    sums: Array
    products: Array | None

    def add(self, other: Moments) -> None:
        """Add those of another sample."""
        self.count += other.count
        self.sums += other.sums
        if self.products is not None:
            self.products += other.products

    def divide(self, units: Array) -> Moments:
        """Return the moments of the layer with each input channel divided by a positive number."""
        by = units[:, None] if self.sums.ndim > 1 else np.tile(units, self.sums.size // len(units))
        pairs = by[..., :, None] * by[..., None, :]
        return Moments(self.count, self.sums / by, None if self.products is None else self.products / pairs)

    @property
    def mean(self) -> Array:
        """The mean of each input."""
        return self.sums / self.count

    @property
    def covariance(self) -> Array:
        """The covariances of inputs, with something more on the diagonal."""
        assert self.products is not None
        mean = self.mean
        found: Array = self.products / self.count - mean[..., :, None] * mean[..., None, :]
        size = found.shape[-1]
        power = np.trace(found, axis1=-2, axis2=-1) / size
        found += (_DAMPING * power + 1e-12)[..., None, None] * np.eye(size)
        return found


class LayerMoments:
    """The moments of a float model's layers, summed up sample by sample."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._layers: dict[str, tuple[Operator, bool]] = {}
        self._found: dict[str, Moments] = {}
        left = _MOST_BYTES
        for op in graph.operators:
            inputs, size = _size(graph, op)
            if inputs:
                with_products = inputs <= _MOST_INPUTS and size <= left
                left -= size if with_products else 0
                self._layers[graph.tensors[op.outputs[0]].name] = op, with_products

    def add(self, values: Mapping[str, Array]) -> None:
        """Add a sample, given all its tensors by name."""
        for name, (op, with_products) in self._layers.items():
            rows = _rows(self._graph, op, values[self._graph.tensors[op.inputs[0]].name])
            products = (rows.swapaxes(-1, -2) @ rows).astype(np.float64) if with_products else None
            found = Moments(rows.shape[-2], rows.sum(-2, dtype=np.float64), products)
            if name in self._found:
                self._found[name].add(found)
            else:
                self._found[name] = found

    def of(self, units: Mapping[str, Array]) -> dict[str, Moments]:
        """Return moments by the name of a layer's output, with channels of tensors divided by their units."""
        made = {}
        for name, found in self._found.items():
            unit = units.get(self._graph.tensors[self._layers[name][0].inputs[0]].name)
            made[name] = found if unit is None else found.divide(unit)
        return made


def _size(graph: Graph, op: Operator) -> tuple[int, int]:
    """Return how many inputs an output of a layer has, and the bytes of their products; 0 for other operators."""
    if op.code not in WEIGHTED or op.code == "TRANSPOSE_CONV":
        return 0, 0
    weights, given = graph.tensors[op.inputs[1]], graph.tensors[op.inputs[0]]
    if not weights.is_constant or given.is_constant or not given.shape:
        return 0, 0
    if op.code == "DEPTHWISE_CONV_2D":
        taps = weights.shape[1] * weights.shape[2]
        return (taps, 8 * given.shape[-1] * taps**2) if weights.shape[-1] % given.shape[-1] == 0 else (0, 0)
    if op.code == "CONV_2D" and weights.shape[-1] != given.shape[-1]:  # groups
        return 0, 0
    inputs = int(np.prod(weights.shape[1:]))
    return inputs, 8 * inputs**2


def _rows(graph: Graph, op: Operator, given: Array) -> Array:
    """Return what some outputs of a layer are computed from, a row each; depthwise for each channel."""
    weights = graph.tensors[op.inputs[1]].shape
    if op.code == "FULLY_CONNECTED":
        rows: Array = given.reshape(-1, weights[-1])
        return rows[_places(len(rows))]
    windows = _windows(op.options, given, weights[1], weights[2])
    counts = windows.shape[:3]
    picked = windows[np.unravel_index(_places(int(np.prod(counts))), counts)]  # row, channel, y, x
    if op.code == "DEPTHWISE_CONV_2D":
        return np.ascontiguousarray(picked.reshape(*picked.shape[:2], -1).swapaxes(0, 1))
    return picked.transpose(0, 2, 3, 1).reshape(len(picked), -1)


def _windows(options: Any, given: Array, tall: int, wide: int) -> Array:
    """Return a view with what each output pixel reads: batch, y, x, channel, and the pixels of the kernel."""
    same = padding_name(options.padding) == "SAME"
    strides = options.strideH, options.strideW
    steps = max(1, options.dilationHFactor), max(1, options.dilationWFactor)
    reach = [(size - 1) * step + 1 for size, step in zip((tall, wide), steps, strict=True)]
    edges = []
    for length, stride, one in zip(given.shape[1:3], strides, reach, strict=True):
        missing = max(0, (-(-length // stride) - 1) * stride + one - length) if same else 0
        edges.append((missing // 2, missing - missing // 2))
    padded = np.pad(given, ((0, 0), *edges, (0, 0)))
    views = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=(1, 2))
    found: Array = views[:, :: strides[0], :: strides[1], :, :: steps[0], :: steps[1]]
    return found


def _places(count: int) -> Array:
    """Return places spread over all."""
    return np.arange(count) if count <= _MOST_ROWS else np.linspace(0, count - 1, _MOST_ROWS).astype(np.int64)
