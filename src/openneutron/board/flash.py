"""Flash sizes: weights, microcode and kernels that NXP's converter would write, by the rules of its version.

`python benchmarks/board.py` compares them with the headers of all public files that it made.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

from openneutron.board.sdk import Rules
from openneutron.compiler.numbers.geometry import axis
from openneutron.litert.codes import VIEWS
from openneutron.litert.graph import DType, Graph, Operator
from openneutron.machine.targets import Target

PARAMETER_BYTES = 8  # per output channel: bias and scale word (NXP's ONNX Runtime provider)
_WEIGHTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED")
_FILLED = ("CONV_2D", "FULLY_CONNECTED")
_WINDOWS = ("CONV_2D", "DEPTHWISE_CONV_2D")
_MOVES = (
    "AVERAGE_POOL_2D", "MAX_POOL_2D", "MEAN", "RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR", "PAD", "PADV2", "MIRROR_PAD"
)  # fmt: skip


def operator_weight_bytes(graph: Graph, op: Operator, target: Target, by: Rules) -> int:
    """Return the size of one operator's constants as NXP stores them: INT8 values, and 8 bytes per channel with a bias.

    Window taps that always fall on padding are not stored: a 3x3 convolution of one pixel keeps one of nine. Rows that only
    pad output channels are not counted: coding takes them away.
    """
    raw = sum(
        tensor.nbytes
        for index in op.inputs
        if index >= 0 and (tensor := graph.tensors[index]).data is not None and tensor.dtype is DType.INT8
    )
    if op.code in _WINDOWS:
        raw = raw * _live_taps(graph, op, 0) * _live_taps(graph, op, 1) // _taps(graph, op)
    if op.code in _FILLED and by.fills_inputs:
        raw = _padded_size(raw, graph.tensors[op.inputs[1]].shape[-1], target.length)
    if op.code == "DEPTHWISE_CONV_2D":
        raw = _depthwise(raw, graph, op, target, by)
    biased = op.code in _WEIGHTED and len(op.inputs) > 2 and op.inputs[-1] >= 0
    return raw + (PARAMETER_BYTES * graph.tensors[op.outputs[0]].shape[-1] if biased else 0)


def _padded_size(size: int, count: int, multiple: int) -> int:
    """Return the size of rows of `count` after each is filled up to a multiple."""
    return size * (-(-count // multiple) * multiple) // max(count, 1)


def _depthwise(raw: int, graph: Graph, op: Operator, target: Target, by: Rules) -> int:
    if (
        graph.tensors[op.inputs[0]].shape[-1] == 1
    ):  # one channel becomes many: a convolution that depth-wise loops can do
        return raw * target.length if by.spread_first else raw * by.first_copies
    return _padded_size(raw, _taps(graph, op), by.tap_multiple)


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


def weight_bytes(graph: Graph, operators: Iterable[Operator], target: Target, by: Rules) -> int:
    """Return the size of the weights of one NeutronGraph."""
    return round(sum(operator_weight_bytes(graph, op, target, by) for op in operators) * by.weight_share)


def prefetch_bytes(graph: Graph, operators: Iterable[Operator], target: Target, by: Rules) -> int:
    """Return the SRAM for weights that are fetched while the call before runs: those of two neighbouring calls."""
    sizes = [operator_weight_bytes(graph, op, target, by) for op in operators if op.code not in VIEWS]
    return max(map(sum, pairwise((0, *sizes))), default=0) + (by.prefetch_bytes if any(sizes) else 0)


def microcode_bytes(calls: int, graph: Graph, operators: Iterable[Operator], by: Rules) -> int:
    """Return the size of the microcode of one NeutronGraph."""
    header, call, move, channel = by.microcode
    found = header + call * calls
    for op in operators:
        found += move * (op.code in _MOVES)
        if op.code == "DEPTHWISE_CONV_2D":
            found += channel * graph.tensors[op.outputs[0]].shape[-1]
    return round(found)


def kernel_bytes(operators: Iterable[Operator], by: Rules) -> int:
    """Return the size of the kernels that a file holds beside the microcode."""
    once, each = by.kernels
    kinds = {op.code for op in operators} - VIEWS
    return once + each * len(kinds) if kinds else 0


def constant_bytes(graph: Graph, operators: Iterable[int]) -> int:
    """Return the size of the constants of operators on the CPU, each tensor counted once."""
    read = {tensor for index in operators for tensor in graph.operators[index].inputs if tensor >= 0}
    return sum(graph.tensors[t].nbytes for t in read if graph.tensors[t].data is not None)
