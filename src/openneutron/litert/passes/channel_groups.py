"""Find which channels of a float graph may take another unit together, without any change of what the graph computes.

A convolution may give a channel in halves if what reads it doubles its weights. Operators between the two must not
notice: an addition needs one unit for both operands, a logistic function has none but its own.

Example:
    >>> groups = channel_groups(model.main)
    >>> groups.of(tensor)  # the group of each channel; -1 where its unit is fixed
    array([0, 1, 2, -1])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from openneutron.litert.graph import DType, Graph, Operator

Array = npt.NDArray[Any]

# Weights and bias among the inputs of operators that compute channels from channels; the input itself.
WEIGHTED: Final = {
    "CONV_2D": (0, 1, 2),
    "DEPTHWISE_CONV_2D": (0, 1, 2),
    "FULLY_CONNECTED": (0, 1, 2),
    "TRANSPOSE_CONV": (2, 1, 3),
}
_ALONG: Final = frozenset(  # each channel of the output is computed from the same channel of the inputs, in proportion
    {
        "RELU", "PRELU", "LEAKY_RELU", "ABS", "MAX_POOL_2D", "AVERAGE_POOL_2D", "RESIZE_BILINEAR",
        "RESIZE_NEAREST_NEIGHBOR", "SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND",
    }
)  # fmt: skip
_TOGETHER: Final = frozenset({"ADD", "SUB", "MAXIMUM", "MINIMUM"})
_REDUCING: Final = frozenset({"MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"})
_VIEWS: Final = frozenset({"RESHAPE", "SQUEEZE", "EXPAND_DIMS"})
_NO_ACTIVATION, _RELU = 0, 1  # of the schema's ActivationFunctionType; others have limits in a unit of their own


class ChannelGroups:
    """The groups, by union: each channel of each float tensor begins with one of its own."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._first: dict[int, int] = {}
        count = 0
        for at, tensor in enumerate(graph.tensors):
            if tensor.dtype is DType.FLOAT32 and not tensor.is_constant and tensor.shape:
                self._first[at] = count
                count += tensor.shape[-1]
        self._parent = list(range(count))
        self._fixed = [False] * count

    def channels(self, tensor: int) -> list[int]:
        """Return the elements of a tensor, one for each channel; none if it is no float activation."""
        if tensor not in self._first:
            return []
        return list(range(self._first[tensor], self._first[tensor] + self.graph.tensors[tensor].shape[-1]))

    def find(self, element: int) -> int:
        while self._parent[element] != element:
            self._parent[element] = self._parent[self._parent[element]]
            element = self._parent[element]
        return element

    def join(self, some: Sequence[int], others: Sequence[int]) -> None:
        """Give elements one group, in pairs."""
        for one, other in zip(some, others, strict=True):
            a, b = self.find(one), self.find(other)
            if a != b:
                self._parent[b] = a
                self._fixed[a] = self._fixed[a] or self._fixed[b]

    def fix(self, *tensors: int) -> None:
        """Let all channels of tensors keep their unit."""
        for tensor in tensors:
            for element in self.channels(tensor):
                self._fixed[self.find(element)] = True

    def is_fixed(self, tensor: int) -> bool:
        """Return whether all channels of a tensor keep their unit."""
        return all(self._fixed[self.find(element)] for element in self.channels(tensor))

    def of(self, tensor: int) -> Array:
        """Return the group of each channel; -1 where its unit is fixed."""
        roots = (self.find(element) for element in self.channels(tensor))
        return np.array([-1 if self._fixed[root] else root for root in roots], np.int64)


def channel_groups(graph: Graph) -> ChannelGroups:
    """Return the groups of a graph; what an unknown operator reads or writes is fixed."""
    groups = ChannelGroups(graph)
    groups.fix(*graph.inputs, *graph.outputs)
    readers = graph.consumers()
    products = []
    for op in graph.operators:
        if op.code == "MUL" and not any(graph.tensors[at].is_constant for at in op.inputs):
            products.append(op)  # they need to know which operand is fixed
        elif not _visit(groups, op, readers):
            groups.fix(*op.inputs, *op.outputs)
    for op in products:
        if not _visit_product(groups, op):
            groups.fix(*op.inputs, *op.outputs)
    return groups


def flattened_channels(count: int, channels: int) -> Array:
    """Return the channel of each of `count` values that a flattened tensor has; the last axis is the innermost.

    Example:
        >>> flattened_channels(6, 3)
        array([0, 1, 2, 0, 1, 2])
    """
    return np.arange(count) % max(channels, 1)


def _visit(groups: ChannelGroups, op: Operator, readers: dict[int, list[int]]) -> bool:
    """Join what an operator asks for; False for one that is not known."""
    graph = groups.graph
    flowing = [at for at in op.inputs if groups.channels(at)]
    if len(op.outputs) != 1 and op.code != "SPLIT":
        return False
    if not _is_proportional(op):
        groups.fix(*op.outputs)
    result = op.outputs[0]
    if op.code in WEIGHTED:
        return _is_known_layer(graph, op, readers)
    if op.code in _TOGETHER or op.code in ("MUL", "DIV"):
        return _visit_elementwise(groups, op, flowing, readers)
    if op.code in _ALONG:
        return len(flowing) == 1 and _join_all(groups, flowing, result)
    if op.code in _REDUCING:
        axes = graph.tensors[op.inputs[1]].data
        dims = len(graph.tensors[op.inputs[0]].shape)
        keeps = axes is not None and dims - 1 not in {int(one) % dims for one in axes.reshape(-1)}
        return keeps and _join_all(groups, flowing, result)
    if op.code in _VIEWS:
        return _visit_view(groups, flowing[0], result) if flowing else False
    if op.code == "TRANSPOSE":
        order = graph.tensors[op.inputs[1]].data
        return order is not None and int(order.reshape(-1)[-1]) == order.size - 1 and _join_all(groups, flowing, result)
    if op.code == "PAD":
        return _visit_pad(groups, op, result)
    if op.code == "CONCATENATION":
        return _visit_concatenation(groups, op, result)
    return False


def _is_proportional(op: Operator) -> bool:
    """Return whether an operator applies no activation, or one without limits of its own."""
    return getattr(op.options, "fusedActivationFunction", 0) in (_NO_ACTIVATION, _RELU)


def _is_known_layer(graph: Graph, op: Operator, readers: dict[int, list[int]]) -> bool:
    """Return whether a layer's weights may be changed: constants that nothing else reads, for all channels of the input."""
    at_input, at_weights, at_bias = WEIGHTED[op.code]
    given, weights = graph.tensors[op.inputs[at_input]], graph.tensors[op.inputs[at_weights]]
    bias = op.inputs[at_bias] if len(op.inputs) > at_bias else -1
    constants = [op.inputs[at_weights], *([bias] if bias >= 0 else [])]
    if any(graph.tensors[at].dtype is not DType.FLOAT32 or not graph.tensors[at].is_constant for at in constants):
        return False
    if any(len(readers.get(at, [])) != 1 for at in constants) or not given.shape:
        return False
    if op.code == "DEPTHWISE_CONV_2D":
        return weights.shape[-1] % given.shape[-1] == 0
    if op.code == "FULLY_CONNECTED":
        return weights.shape[-1] % given.shape[-1] == 0
    return weights.shape[-1] == given.shape[-1]


def _visit_elementwise(groups: ChannelGroups, op: Operator, flowing: list[int], readers: dict[int, list[int]]) -> bool:
    graph, result = groups.graph, op.outputs[0]
    constants = [at for at in op.inputs if graph.tensors[at].is_constant]
    if not constants:
        return op.code in _TOGETHER and _join_all(groups, flowing, result)
    if len(flowing) != 1 or not _join_all(groups, flowing, result):
        return False
    if op.code in ("MUL", "DIV"):
        return op.inputs[0] == flowing[0] or op.code == "MUL"
    (constant,) = constants
    shape = graph.tensors[constant].shape
    own = len(readers.get(constant, [])) == 1 and bool(shape) and shape[-1] == graph.tensors[result].shape[-1]
    return own or not graph.tensors[constant].data.any()  # type: ignore[union-attr]


def _visit_product(groups: ChannelGroups, op: Operator) -> bool:
    """Let a product of two activations have the unit of one where the other's is fixed."""
    one, other = op.inputs
    if groups.is_fixed(one) == groups.is_fixed(other) or not _is_proportional(op):
        return False
    free = other if groups.is_fixed(one) else one
    return _join_all(groups, [free], op.outputs[0])


def _join_all(groups: ChannelGroups, tensors: Sequence[int], result: int) -> bool:
    wanted = groups.channels(result)
    if not tensors or any(len(groups.channels(at)) != len(wanted) for at in tensors):
        return False
    for at in tensors:
        groups.join(wanted, groups.channels(at))
    return True


def _visit_view(groups: ChannelGroups, given: int, result: int) -> bool:
    """Channels stay innermost, several of them may become one axis, or one axis several."""
    before, after = groups.channels(given), groups.channels(result)
    short, long = sorted((before, after), key=len)
    if not short or len(long) % len(short):
        return False
    groups.join(long, [short[at] for at in flattened_channels(len(long), len(short))])
    return True


def _visit_pad(groups: ChannelGroups, op: Operator, result: int) -> bool:
    edges = groups.graph.tensors[op.inputs[1]].data
    if edges is None:
        return False
    first = int(edges.reshape(-1, 2)[-1][0])
    before = groups.channels(op.inputs[0])
    groups.join(groups.channels(result)[first : first + len(before)], before)
    return True


def _visit_concatenation(groups: ChannelGroups, op: Operator, result: int) -> bool:
    dims = len(groups.graph.tensors[result].shape)
    if any(not groups.channels(at) for at in op.inputs):
        return False
    if op.options.axis % dims != dims - 1:
        return _join_all(groups, op.inputs, result)
    groups.join(groups.channels(result), [one for at in op.inputs for one in groups.channels(at)])
    return True
