"""A quantized graph as a float one that makes the same errors: its weights, and the steps of the activations asked for.

Before:  CONV_2D in INT8 -> QUANTIZE to another scale
After:   CONV_2D in float with the weights that are stored -> QUANTIZE -> DEQUANTIZE

LiteRT's float kernels run it several times as fast as its INT8 reference kernels, and each activation can have its steps alone.
Steps of 16 bits are left out: they are too small to matter beside those of 8.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from openneutron.litert.graph import DType, Graph, Model, Operator, Quantization, Tensor
from openneutron.litert.versions import version_of

_CONVERTING = frozenset({"QUANTIZE", "DEQUANTIZE"})


def float_twin(
    model: Model, *, steps: Collection[int] | None = None, exact: Mapping[int, np.ndarray] | None = None
) -> Model:
    """Return the twin of a model's main graph; with `steps` only these tensors, by index, are rounded.

    `exact` has what constants are in float: those that are not among the steps have these values.

    Example:
        >>> twin = float_twin(read_model(quantized), steps=())  # the weights' error alone
    """
    graph = model.main
    made = Graph(graph.name, [_as_float(one) for one in graph.tensors], [], [*graph.inputs], [])
    for at, value in (exact or {}).items():
        if steps is not None and at not in steps:
            made.tensors[at].data = value
    same: dict[int, int] = {}
    for at in graph.inputs:
        _round(graph, made, at, at, steps, same)
    for op in graph.operators:
        inputs = [same.get(at, at) for at in op.inputs]
        if op.code in _CONVERTING:
            same[op.outputs[0]] = inputs[0]
            if op.code == "QUANTIZE":
                _round(graph, made, op.outputs[0], inputs[0], steps, same)
            continue
        made.operators.append(replace(op, inputs=inputs, outputs=[*op.outputs]))
        for at in op.outputs:
            _round(graph, made, at, at, steps, same)
    made.outputs = [same.get(at, at) for at in graph.outputs]
    return Model([made])


def real_values(tensor: Tensor) -> np.ndarray:
    """Return what the stored integers of a constant stand for.

    Example:
        >>> real_values(Tensor("w", (2,), DType.INT8, Quantization((0.5,), (0,)), np.int8([2, -2])))
        array([ 1., -1.])
    """
    how, data = tensor.quantization, tensor.data
    assert how is not None and data is not None
    shape = [1] * len(tensor.shape)
    if how.per_channel:
        shape[how.axis] = len(how.scale)
    scale, zero = (np.asarray(one, np.float64).reshape(shape) for one in (how.scale, how.zero_point))
    values: np.ndarray = (data.astype(np.float64) - zero) * scale
    return values


def _as_float(tensor: Tensor) -> Tensor:
    if tensor.quantization is None or tensor.dtype.numpy.kind not in "iu":
        return replace(tensor)
    data = None
    if tensor.data is not None:
        data = np.array(real_values(tensor), np.float32)
        data.flags.writeable = False
    return replace(tensor, dtype=DType.FLOAT32, quantization=None, data=data)


def _round(graph: Graph, made: Graph, at: int, value: int, steps: Collection[int] | None, same: dict[int, int]) -> None:
    """Let `value` stand for a tensor, in its INT8 steps if these are asked for."""
    tensor = graph.tensors[at]
    if value != at:
        same[at] = value
    if tensor.dtype not in (DType.INT8, DType.UINT8) or tensor.quantization is None:
        return
    if steps is not None and at not in steps:
        return
    scale, zero = tensor.quantization.scalar
    first = len(made.tensors)
    quantization = Quantization((scale,), (zero,))
    made.tensors.append(Tensor(f"{tensor.name}/stored", tensor.shape, tensor.dtype, quantization))
    made.tensors.append(Tensor(f"{tensor.name}/rounded", tensor.shape, DType.FLOAT32))
    made.operators.append(Operator("QUANTIZE", [value], [first], version=version_of("QUANTIZE")))
    made.operators.append(Operator("DEQUANTIZE", [first], [first + 1], version=version_of("DEQUANTIZE")))
    same[at] = first + 1
