"""Operators without a 16-bit kernel as some that have one.

Before:  y = PRELU(x, slope)
After:   y = ADD(MUL(x, slope), MUL(RELU(x), 1 - slope))

Before:  y = HARD_SWISH(x)
After:   y = MUL(MUL(x, ADD(x, 3) with RELU6), 1/6)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from openneutron.litert.codes import FUSED_ACTIVATIONS
from openneutron.litert.graph import DType, Graph, Operator, Tensor
from openneutron.litert.operator_options import make_options
from openneutron.litert.versions import version_of

Array = npt.NDArray[Any]
Ranges = Mapping[str, tuple[float, float]]
_SLOPED: Final = frozenset({"PRELU", "LEAKY_RELU"})


def widen_operators(graph: Graph, names: Collection[str], ranges: Ranges) -> dict[str, tuple[float, float]]:
    """Rewrite float operators by the names of their outputs; returns the ranges of the tensors between.

    `ranges` has those of the operators' inputs and outputs.

    Example:
        >>> widen_operators(model.main, {"y"}, {"x": (-1.0, 2.0), "y": (-0.1, 2.0)})
        {'y/sloped': (-0.1, 0.2), 'y/positive': (0.0, 2.0), 'y/rest': (0.0, 1.8)}
    """
    writer = _Writer(graph, ranges)
    operators: list[Operator] = []
    for op in graph.operators:
        name = graph.tensors[op.outputs[0]].name if op.outputs else ""
        if name in names and op.code in _SLOPED | {"HARD_SWISH"} and graph.tensors[op.inputs[0]].name in ranges:
            operators += writer.write_slope(op) if op.code in _SLOPED else writer.hard_swish(op)
        else:
            operators.append(op)
    graph.operators = operators
    return writer.made


class _Writer:
    """Writes the operators and keeps the ranges of what they hold."""

    def __init__(self, graph: Graph, ranges: Ranges) -> None:
        self.graph, self.ranges = graph, ranges
        self.made: dict[str, tuple[float, float]] = {}

    def write_slope(self, op: Operator) -> list[Operator]:
        """Write a slope for negative values, constant for all or for each channel."""
        x, result = op.inputs[0], op.outputs[0]
        if op.code == "PRELU":
            slope = self.graph.tensors[op.inputs[1]].data
            if slope is None:
                return [op]
        else:
            slope = np.array([op.options.alpha], np.float32)
        low, high = self._range(x)
        edges = slope.min(), slope.max()
        sloped = self._tensor(result, "sloped", [low * edge for edge in edges] + [high * edge for edge in edges])
        positive = self._tensor(result, "positive", [high])
        rest = self._tensor(result, "rest", [high * (1 - edge) for edge in edges])
        return [
            self._op("MUL", [x, self._constant(result, "slope", slope)], sloped),
            self._op("RELU", [x], positive),
            self._op("MUL", [positive, self._constant(result, "missing", 1 - slope)], rest),
            self._op("ADD", [sloped, rest], result),
        ]

    def hard_swish(self, op: Operator) -> list[Operator]:
        """Write a value times its share between -3 and 3."""
        x, result = op.inputs[0], op.outputs[0]
        low, high = self._range(result)
        share = self._tensor(result, "share", [6.0])
        product = self._tensor(result, "product", [6 * low, 6 * high])
        return [
            self._op("ADD", [x, self._constant(result, "three", np.array([3], np.float32))], share, "RELU6"),
            self._op("MUL", [x, share], product),
            self._op("MUL", [product, self._constant(result, "sixth", np.array([1 / 6], np.float32))], result),
        ]

    def _range(self, tensor: int) -> tuple[float, float]:
        return self.ranges[self.graph.tensors[tensor].name]

    def _tensor(self, result: int, part: str, values: list[Any]) -> int:
        """Add a tensor of the result's shape whose values lie between 0 and those given."""
        shaped = self.graph.tensors[result]
        name = f"{shaped.name.replace(';', '/')}/{part}"
        self.made[name] = (float(min(0.0, *values, 0.0)), float(max(0.0, *values, 0.0)))
        self.graph.tensors.append(Tensor(name, shaped.shape, DType.FLOAT32))
        return len(self.graph.tensors) - 1

    def _constant(self, result: int, part: str, data: Array) -> int:
        value = np.array(data, np.float32)  # memory of its own: the quantizer changes a buffer for all that share it
        value.flags.writeable = False
        name = f"{self.graph.tensors[result].name.replace(';', '/')}/{part}"
        self.graph.tensors.append(Tensor(name, value.shape, DType.FLOAT32, data=value))
        return len(self.graph.tensors) - 1

    def _op(self, code: str, inputs: list[int], output: int, activation: str = "NONE") -> Operator:
        options = None
        if code != "RELU":
            options = make_options(code, {})
            options.fusedActivationFunction = FUSED_ACTIVATIONS.index(activation)
        return Operator(code, inputs, [output], options, version=version_of(code))
