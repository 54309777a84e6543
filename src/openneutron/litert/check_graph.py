"""Checks that a graph is consistent: indices exist, the order of operators can run, scales are usable numbers.

The reader runs this on every file and the builder on every graph it finishes.
"""

from __future__ import annotations

from math import isfinite

import numpy as np

from openneutron.errors import FormatError
from openneutron.litert.graph import DType, Graph, Model, Operator, Tensor

# Fields of control-flow options that name another graph.
GRAPH_FIELDS = (
    "thenSubgraphIndex",
    "elseSubgraphIndex",
    "condSubgraphIndex",
    "bodySubgraphIndex",
    "initSubgraphIndex",
    "decompositionSubgraphIndex",
    "subgraph",
)
# Operators with side effects, and those that run other graphs or unknown code.
_NO_OUTPUTS = frozenset(
    {"ASSIGN_VARIABLE", "CALL", "CALL_ONCE", "CUSTOM", "HASHTABLE_IMPORT", "IF", "WHILE", "STABLEHLO_CASE",
     "STABLEHLO_COMPOSITE", "STABLEHLO_CUSTOM_CALL", "STABLEHLO_WHILE"}
)  # fmt: skip
_QUANTIZED = frozenset({DType.INT4, DType.UINT4, DType.INT8, DType.UINT8, DType.INT16})


def check_model(model: Model, source: str) -> None:
    """Raise FormatError when a graph, a signature or a call between graphs is inconsistent."""
    if not model.graphs:
        raise FormatError("the model has no graph", where=source)
    for number, graph in enumerate(model.graphs):
        check_graph(graph, f"{source}, graph {number}")
    _check_calls(model, source)
    for signature in model.signatures:
        where = f"{source}, signature {signature.key!r}"
        if signature.graph >= len(model.graphs):
            raise FormatError(f"it names graph {signature.graph} of {len(model.graphs)}", where=where)
        count = len(model.graphs[signature.graph].tensors)
        for name, index in (*signature.inputs, *signature.outputs):
            if not 0 <= index < count:
                raise FormatError(f"argument {name!r} names tensor {index} of {count}", where=where)


def check_graph(graph: Graph, where: str) -> None:
    """Raise FormatError unless every index is in range and the operators can run in their order."""
    count = len(graph.tensors)
    for kind, indices in (("input", graph.inputs), ("output", graph.outputs)):
        for index in indices:
            if not 0 <= index < count:
                raise FormatError(f"graph {kind} names tensor {index} of {count}", where=where)
    for index in graph.inputs:
        if graph.tensors[index].is_constant:
            raise FormatError(f"tensor {index} is a graph input and a constant at once", where=where)

    # A tensor without elements has its value, whether or not the file says so.
    ready = bytearray(t.is_constant or t.is_variable or 0 in t.shape for t in graph.tensors)
    produced = bytearray(count)
    used = bytearray(count)
    for index in graph.inputs:
        ready[index] = produced[index] = 1
    for number, op in enumerate(graph.operators):
        _check_operator(graph, number, op, ready, produced, used, where)
    for index in graph.outputs:
        if not ready[index]:
            raise FormatError(f"graph output tensor {index} is never computed", where=where)
        if graph.tensors[index].is_variable and not produced[index]:
            raise FormatError(f"graph output tensor {index} is an operator's state", where=where)
    for index in (*graph.inputs, *graph.outputs):
        used[index] = 1
    for index, tensor in enumerate(graph.tensors):
        if used[index]:
            _check_quantization(tensor, f"{where}, tensor {index}")


def _check_operator(
    graph: Graph, number: int, op: Operator, ready: bytearray, produced: bytearray, used: bytearray, where: str
) -> None:
    count = len(graph.tensors)

    def fail(message: str) -> FormatError:
        return FormatError(message, where=f"{where}, operator {number} ({op.label})")

    for index in op.inputs:
        if index == -1:
            continue
        if not 0 <= index < count:
            raise fail(f"it reads tensor {index} of {count}")
        if not ready[index]:
            raise fail(f"it reads tensor {index} before any operator has computed it: the graph is cyclic or unordered")
        used[index] = 1
    for index in op.intermediates:
        if not -1 <= index < count:
            raise fail(f"its intermediates name tensor {index} of {count}")
    if not op.outputs and op.code not in _NO_OUTPUTS:
        raise fail("it has no outputs")
    for index in op.outputs:
        if not 0 <= index < count:
            raise fail(f"it writes tensor {index} of {count}")
        if graph.tensors[index].is_constant:
            raise fail(f"it writes tensor {index}, which is a constant")
        if produced[index]:
            raise fail(f"it writes tensor {index}, which has been written before")
        ready[index] = produced[index] = used[index] = 1


def _check_quantization(tensor: Tensor, where: str) -> None:
    """Refuse narrow integers whose scales are not usable numbers."""
    quantization = tensor.quantization
    if quantization is None or tensor.dtype not in _QUANTIZED:
        return
    for scale in quantization.scale:
        if not isfinite(scale) or (scale < 0 and not tensor.is_constant):
            raise FormatError(f"its scale is {scale}", where=where)
    if quantization.scale == (0.0,):
        raise FormatError("its scale is 0", where=where)
    low, high = _range(tensor.dtype)
    for zero_point in quantization.zero_point:
        if not low <= zero_point <= high:
            raise FormatError(f"its zero point {zero_point} lies outside {tensor.dtype}", where=where)


def _range(dtype: DType) -> tuple[int, int]:
    if dtype is DType.INT4:
        return -8, 7
    if dtype is DType.UINT4:
        return 0, 15
    limits = np.iinfo(dtype.numpy)
    return int(limits.min), int(limits.max)


def _check_calls(model: Model, source: str) -> None:
    """Refuse calls of graphs that do not exist, and recursion."""
    calls: list[list[int]] = []
    for number, graph in enumerate(model.graphs):
        called: list[int] = []
        for position, op in enumerate(graph.operators):
            for options in (op.options, op.options2):
                for field in GRAPH_FIELDS:
                    target = getattr(options, field, None)
                    if target is None:
                        continue
                    if not 0 <= target < len(model.graphs):
                        where = f"{source}, graph {number}, operator {position} ({op.label})"
                        raise FormatError(f"it calls graph {target} of {len(model.graphs)}", where=where)
                    called.append(target)
        calls.append(called)

    finished = [False] * len(calls)
    for start in range(len(calls)):
        path, open_calls = {start: None}, [(start, iter(calls[start]))]
        while open_calls and not finished[start]:
            number, rest = open_calls[-1]
            following = next((target for target in rest if not finished[target]), None)
            if following is None:
                finished[number] = True
                path.pop(number)
                open_calls.pop()
            elif following in path:
                raise FormatError(f"graph {following} calls itself", where=f"{source}, graph {number}")
            else:
                path[following] = None
                open_calls.append((following, iter(calls[following])))
