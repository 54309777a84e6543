"""Operators that a quantizer left in float between integers, in the INT8 form that LiteRT has of them.

Before:  DEQUANTIZE -> PRELU -> QUANTIZE
After:   PRELU, with INT8 slopes

Where an operator keeps the scale of its input, as a minimum does, the QUANTIZE behind it stays and changes the scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from openneutron.litert.graph import DType, Graph, Operator, Quantization, Tensor
from openneutron.litert.versions import version_of

Ranges = Mapping[str, tuple[float, float]]
Array = npt.NDArray[Any]

# The output has a scale of its own.
_SCALED: Final = frozenset({"PRELU", "LEAKY_RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "ABS", "ELU", "EXP"})
# All inputs and the output have one scale.
_KEEPING: Final = frozenset(
    {
        "MINIMUM", "MAXIMUM", "REDUCE_MAX", "REDUCE_MIN", "DEPTH_TO_SPACE", "SPACE_TO_DEPTH", "SPACE_TO_BATCH_ND",
        "BATCH_TO_SPACE_ND", "TILE", "EXPAND_DIMS", "SQUEEZE", "MIRROR_PAD", "REVERSE_V2",
    }
)  # fmt: skip
_TO_INDICES: Final = frozenset({"ARG_MAX", "ARG_MIN"})
_LEAST_RANGE: Final = 1e-6  # of values that are all 0


def narrow_operators(graph: Graph, ranges: Ranges) -> int:
    """Give operators between DEQUANTIZE and QUANTIZE integers; returns how many.

    `ranges` are those of float tensors by name, for outputs that no QUANTIZE reads. What is read by nothing any more stays
    among the tensors: `drop_tensors` takes it away.

    Example:
        >>> narrow_operators(model.main, {"y": (-1.0, 3.0)})
        23
    """
    narrowing = _Narrowing(graph, ranges)
    operators: list[Operator] = []
    for op in graph.operators:
        operators += narrowing.rewrite(op)
    graph.operators = _without_unread(graph, operators)
    return narrowing.count


def quantization_of(low: float, high: float) -> Quantization:
    """Return the INT8 scale and zero point of values in a range that is widened to have 0 in it."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = float(np.float32(max(high - low, _LEAST_RANGE) / 255))
    return Quantization((scale,), (int(np.clip(round(-128 - low / scale), -128, 127)),))


class _Narrowing:
    """The integers that stand for float tensors, while operators are rewritten in order."""

    def __init__(self, graph: Graph, ranges: Ranges) -> None:
        self.graph, self.ranges = graph, ranges
        self.integers: dict[int, int] = {}
        self.count = 0
        self._scales: dict[int, Quantization] = {}
        self._readers: dict[int, set[str]] = {}
        for op in graph.operators:
            for at in op.inputs:
                self._readers.setdefault(at, set()).add(op.code)
            if op.code == "QUANTIZE" and graph.tensors[op.outputs[0]].dtype is DType.INT8:
                found = graph.tensors[op.outputs[0]].quantization
                if found is not None:
                    self._scales.setdefault(op.inputs[0], found)

    def rewrite(self, op: Operator) -> list[Operator]:
        """Return what stands in the place of an operator."""
        tensors = self.graph.tensors
        if op.code == "DEQUANTIZE" and tensors[op.inputs[0]].dtype is DType.INT8:
            self.integers[op.outputs[0]] = op.inputs[0]
            return [op]
        if op.code == "DEQUANTIZE" and tensors[op.inputs[0]].dtype is DType.INT16:
            return [op, *self._from_16_bits(op)]
        if op.code == "QUANTIZE" and op.inputs[0] in self.integers:
            return [replace(op, inputs=[self.integers[op.inputs[0]]], version=version_of(op.code))]
        return self._narrowed(op) or [op]

    def _from_16_bits(self, op: Operator) -> list[Operator]:
        """Return what makes INT8 of a tensor of 16 bits that is read as float by operators with an INT8 form alone."""
        given, (result,) = self.graph.tensors[op.inputs[0]], op.outputs
        known = self.ranges.get(given.name)
        if known is None or self._readers.get(result, set()) - (_SCALED | _KEEPING | _TO_INDICES):
            return []
        narrow = self._add(f"{given.name}_int8", given.shape, quantization_of(*known))
        self.integers[result] = narrow
        return [Operator("QUANTIZE", [op.inputs[0]], [narrow], version=version_of("QUANTIZE"))]

    def _narrowed(self, op: Operator) -> list[Operator]:
        tensors = self.graph.tensors
        if op.code not in _SCALED | _KEEPING | _TO_INDICES or len(op.outputs) != 1:
            return []
        values = [at for at in op.inputs if at >= 0 and tensors[at].dtype is DType.FLOAT32]
        flowing = [at for at in values if not tensors[at].is_constant]
        if not flowing or any(at not in self.integers for at in flowing):
            return []
        scales = {tensors[self.integers[at]].quantization for at in flowing}
        (first, *others) = scales
        if first is None or first.per_channel or (others and op.code not in _SCALED):
            return []
        made = {at: self.integers.get(at, -1) for at in flowing}
        for at in values:
            if at not in made:
                made[at] = self._constant(at, None if op.code in _SCALED else first)
        inputs = [made.get(at, at) for at in op.inputs]
        self.count += 1
        if op.code in _TO_INDICES:
            return [replace(op, inputs=inputs, version=version_of(op.code))]
        (result,) = op.outputs
        scale = self._scale_of(result) if op.code in _SCALED else first
        if scale is None:
            self.count -= 1
            return []
        name = tensors[result].name
        if result not in self.graph.outputs:  # operators are known by the names of their outputs
            tensors[result].name = f"{name}_float"
        narrow = self._add(f"{name}_int8" if result in self.graph.outputs else name, tensors[result].shape, scale)
        self.integers[result] = narrow
        return [
            replace(op, inputs=inputs, outputs=[narrow], version=max(op.version, version_of(op.code))),
            Operator("DEQUANTIZE", [narrow], [result], version=version_of("DEQUANTIZE")),
        ]

    def _scale_of(self, result: int) -> Quantization | None:
        if result in self._scales:
            return self._scales[result]
        known = self.ranges.get(self.graph.tensors[result].name)
        return None if known is None else quantization_of(*known)

    def _constant(self, at: int, scale: Quantization | None) -> int:
        tensor = self.graph.tensors[at]
        assert tensor.data is not None
        low, high = (float(edge) for edge in (tensor.data.min(initial=0), tensor.data.max(initial=0)))
        scale = scale or quantization_of(low, high)
        factor, zero = scale.scalar
        stored: Array = np.asarray(np.clip(np.rint(tensor.data / factor) + zero, -128, 127), np.int8)
        stored.flags.writeable = False
        return self._add(f"{tensor.name}_int8", tensor.shape, scale, stored)

    def _add(self, name: str, shape: tuple[int, ...], scale: Quantization, data: Array | None = None) -> int:
        self.graph.tensors.append(Tensor(name, shape, DType.INT8, scale, data))
        return len(self.graph.tensors) - 1


def _without_unread(graph: Graph, operators: list[Operator]) -> list[Operator]:
    """Leave out conversions that nothing reads, and those between equal scales."""
    same: dict[int, int] = {}
    kept: list[Operator] = []
    for op in operators:
        op = replace(op, inputs=[same.get(at, at) for at in op.inputs])
        if op.code == "QUANTIZE" and op.outputs[0] not in graph.outputs and _is_equal(graph, op):
            same[op.outputs[0]] = op.inputs[0]
        else:
            kept.append(op)
    read = {at for op in kept for at in op.inputs} | set(graph.outputs)
    return [op for op in kept if op.code not in ("DEQUANTIZE", "QUANTIZE") or op.outputs[0] in read]


def _is_equal(graph: Graph, op: Operator) -> bool:
    before, after = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    return before.dtype is after.dtype and before.quantization == after.quantization
