"""Flash sizes: weights and microcode that NXP's converter would write, estimated from the headers of files it made.

| file | weights | estimate | microcode | estimate |
|---|---|---|---|---|
| CifarNet | 91,992 | 90,544 | 1,112 | 1,060 |
| uNPU autoencoder | 139,080 | 139,264 | 680 | 680 |
| uNPU NAS | 358,308 | 360,720 | 2,008 | 1,980 |
| uNPU ResNet | 257,192 | 260,480 | 2,280 | 2,460 |
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from openneutron.compiler.numbers.geometry import axis
from openneutron.litert.graph import DType, Graph, Operator

PARAMETER_BYTES = 8  # per output channel: bias and scale word (NXP's ONNX Runtime provider)
HEADER_BYTES = 120  # fitted on four files, like the next two
CALL_BYTES = 80
POOL_BYTES = 100  # what a pool takes beside its call
_WEIGHTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED")
_WINDOWS = ("CONV_2D", "DEPTHWISE_CONV_2D")
_POOLS = ("AVERAGE_POOL_2D", "MAX_POOL_2D", "MEAN")


def operator_weight_bytes(graph: Graph, op: Operator) -> int:
    """Return the size of one operator's constants as NXP stores them: raw INT8 values, and 8 bytes per channel with a bias.

    Window taps that always fall on padding are not stored: a 3x3 convolution of one pixel keeps one of nine.
    """
    raw = sum(
        tensor.nbytes
        for index in op.inputs
        if index >= 0 and (tensor := graph.tensors[index]).data is not None and tensor.dtype is DType.INT8
    )
    if op.code in _WINDOWS:
        raw = raw * _live_taps(graph, op, 0) * _live_taps(graph, op, 1) // _taps(graph, op)
    biased = op.code in _WEIGHTED and len(op.inputs) > 2 and op.inputs[-1] >= 0
    return raw + (PARAMETER_BYTES * graph.tensors[op.outputs[0]].shape[-1] if biased else 0)


def _taps(graph: Graph, op: Operator) -> int:
    return math.prod(graph.tensors[op.inputs[1]].shape[1:3])


def _live_taps(graph: Graph, op: Operator, direction: int) -> int:
    """Return how many rows (0) or columns (1) of the window overlap the image at some output position."""
    o = op.options
    size = graph.tensors[op.inputs[0]].shape[1 + direction]
    kernel = graph.tensors[op.inputs[1]].shape[1 + direction]
    stride, dilation = (o.strideH, o.dilationHFactor) if direction == 0 else (o.strideW, o.dilationWFactor)
    count, before = axis(size, kernel, stride, dilation, o.padding)
    starts = [at * stride - before for at in range(count)]
    return sum(any(0 <= start + tap * dilation < size for start in starts) for tap in range(kernel))


def weight_bytes(graph: Graph, operators: Iterable[Operator]) -> int:
    """Return the size of the weights of one NeutronGraph."""
    return sum(operator_weight_bytes(graph, op) for op in operators)


def microcode_bytes(calls: int, operators: Iterable[Operator]) -> int:
    """Return the size of the microcode of one NeutronGraph."""
    return HEADER_BYTES + CALL_BYTES * calls + POOL_BYTES * sum(op.code in _POOLS for op in operators)


def constant_bytes(graph: Graph, operators: Iterable[int]) -> int:
    """Return the size of the constants of operators on the CPU, each tensor counted once."""
    read = {tensor for index in operators for tensor in graph.operators[index].inputs if tensor >= 0}
    return sum(graph.tensors[t].nbytes for t in read if graph.tensors[t].data is not None)
