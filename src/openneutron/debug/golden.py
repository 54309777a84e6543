"""The golden values: every tensor of a LiteRT model, computed by LiteRT's reference kernels.

Two operators are exceptions: ELU has no reference kernel, so LiteRT's only one is used; the reference kernel of SUM reads
INT8 as bytes, so its intended integer form is computed here.

Example:
    >>> values = golden_values(Path("model.tflite").read_bytes(), [image])
    >>> values[graph.outputs[0]]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.compiler.quantize import multiplier
from openneutron.litert.graph import Graph, Model, Operator
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.litert_runner import LiteRtRunner

Array = npt.NDArray[Any]


def golden_values(data: bytes, inputs: Sequence[Array], *, source: str = "<bytes>") -> dict[int, Array]:
    """Tensor index → value, of every tensor that the main graph reads or computes."""
    model = read_model(data, source=source)
    graph = model.main
    values: dict[int, Array] = {at: t.data for at, t in enumerate(graph.tensors) if t.data is not None}
    values |= dict(zip(graph.inputs, inputs, strict=True))
    for special, group in groupby(graph.operators, key=_is_sum):
        operators = list(group)
        if special:
            for op in operators:
                values[op.outputs[0]] = _sum(graph, op, values)
        else:
            _run(model, operators, values, source)
    return values


def _is_sum(op: Operator) -> bool:
    return op.code == "SUM"


def _run(model: Model, operators: list[Operator], values: dict[int, Array], source: str) -> None:
    """A run of operators as a model of its own, all of whose tensors are outputs."""
    graph = model.main
    made = list(dict.fromkeys(t for op in operators for t in op.outputs))
    read = dict.fromkeys(t for op in operators for t in op.inputs if t >= 0)
    inputs = [t for t in read if t not in made and graph.tensors[t].data is None and not graph.tensors[t].is_variable]
    part = Model(
        [Graph(graph.name, graph.tensors, operators, inputs, made), *model.graphs[1:]], metadata=model.metadata
    )
    outputs = LiteRtRunner(write_model(part), source=source).run([values[t] for t in inputs]).outputs
    values |= dict(zip(made, outputs.values(), strict=True))


def _sum(graph: Graph, op: Operator, values: dict[int, Array]) -> Array:
    """SUM over INT8 as its quantization defines it: integer sum, one rescale with double rounding."""
    x, y = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    axes = tuple({int(axis) % len(x.shape) for axis in np.asarray(values[op.inputs[1]]).reshape(-1)})
    if x.quantization is None or y.quantization is None:
        total: Array = values[op.inputs[0]].sum(axis=axes, dtype=y.dtype.numpy)
        return total.reshape(y.shape)
    (in_scale, in_zero), (out_scale, out_zero) = x.quantization.scalar, y.quantization.scalar
    count = math.prod(x.shape[axis] for axis in axes)
    exact = values[op.inputs[0]].astype(np.int64).sum(axis=axes) - in_zero * count
    limits = np.iinfo(y.dtype.numpy)
    rescaled: Array = _rescale(exact, *multiplier(in_scale / out_scale)) + out_zero
    clipped: Array = np.clip(rescaled, limits.min, limits.max).astype(y.dtype.numpy)
    return clipped.reshape(y.shape)


def _rescale(x: Array, m: int, shift: int) -> Array:
    """MultiplyByQuantizedMultiplier with double rounding, on int64 arrays of int32 values."""
    left: Array = (x << max(shift, 0)).astype(np.int32).astype(np.int64)
    high: Array = (left * m + (1 << 30)) >> 31
    bits = max(-shift, 0)
    rounded: Array = high if bits == 0 else (high + (1 << (bits - 1)) - (high < 0)) >> bits
    return rounded
