"""DecomposeWide: replaces activations that LiteRT has only in 8 bits by operators that it has in 16 bits too.

Only for nodes with 16-bit activations: left whole they would be stored in 8 bits in the middle of a 16-bit model.

Before:  y = hardswish(x)                           y = prelu(x, slopes)
After:   y = mul(mul(x, relu6(add(x, 3))), 1/6)     y = maximum(x, mul(x, slopes))

PReLU with a slope above 1 is relu(x) + (x - relu(x)) * slopes.

Before:  y = silu(x)                                y = gelu(x)
After:   y = mul(x, sigmoid(x))                     y = mul(mul(x, 0.5), add(tanh(c x (1 + 0.044715 x²)), 1))

Before:  y = softmax(x), of many classes
After:   y = softmax(sub(x, amax(x)))

GELU uses its usual tanh approximation, within 5e-4 of the exact function: one step of 16 bits at a range of ±16.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.many_classes import SOFTMAX, is_attention, is_over_many
from openneutron.executorch.quantize.passes._attributes import tensor_of
from openneutron.executorch.quantize.passes._insert import Insert

_CUBIC = 0.044715
_aten = torch.ops.aten


def decompose_wide(model: GraphModule, is_wide: Callable[[Node], bool]) -> int:
    """Rewrite in place the nodes that `is_wide` chooses; returns the number of changed nodes."""
    count = 0
    for node in list(model.graph.nodes):
        rule, _ = _RULES.get(operator_name(node), (None, 0))
        if rule is None or not isinstance(value_of(node), torch.Tensor) or not is_wide(node):
            continue
        # Probabilities of attention are masked, or split in two parts, by passes of their own.
        if operator_name(node) in SOFTMAX and (is_attention(node) or not is_over_many(node)):
            continue
        node.replace_all_uses_with(rule(Insert(model, node), node))
        model.graph.erase_node(node)
        count += 1
    return count


def wide_operators(node: Node) -> int:
    """Return how many operators a node becomes with 16-bit activations, 0 where it has no such form."""
    return _RULES.get(operator_name(node), (None, 0))[1]


def _hard_sigmoid(call: Insert, node: Node) -> Node:
    return call(_aten.mul.Tensor, call(_aten.relu6.default, call(_aten.add.Tensor, node.args[0], 3.0)), 1 / 6)


def _hard_swish(call: Insert, node: Node) -> Node:
    gate = call(_aten.relu6.default, call(_aten.add.Tensor, node.args[0], 3.0))
    return call(_aten.mul.Tensor, call(_aten.mul.Tensor, node.args[0], gate), 1 / 6)  # layers behind take the constant


def _silu(call: Insert, node: Node) -> Node:
    return call(_aten.mul.Tensor, node.args[0], call(_aten.sigmoid.default, node.args[0]))


def _gelu(call: Insert, node: Node) -> Node:
    x: Any = node.args[0]
    square = call(_aten.mul.Tensor, x, x)
    inner = call(_aten.add.Tensor, call(_aten.mul.Tensor, square, _CUBIC), 1.0)
    scaled = call(_aten.mul.Tensor, call(_aten.mul.Tensor, x, math.sqrt(2 / math.pi)), inner)
    gate = call(_aten.add.Tensor, call(_aten.tanh.default, scaled), 1.0)
    return call(_aten.mul.Tensor, call(_aten.mul.Tensor, x, 0.5), gate)


def _prelu(call: Insert, node: Node) -> Node:
    given = arguments(node)
    x, slopes = given["self"], given["weight"]
    is_below = _slopes_are_below_one(call, slopes)
    rank, count = value_of(node).dim(), value_of(slopes).numel()
    if rank > 1:
        slopes = call(_aten.reshape.default, slopes, [1, count] + [1] * (rank - 2))
    if is_below:
        return call(_aten.maximum.default, x, call(_aten.mul.Tensor, x, slopes))
    positive = call(_aten.relu.default, x)
    negative = call(_aten.sub.Tensor, x, positive)
    return call(_aten.add.Tensor, positive, call(_aten.mul.Tensor, negative, slopes))


def _slopes_are_below_one(call: Insert, slopes: Node) -> bool:
    """Return whether x times its slope is never above a positive x nor below a negative one."""
    known = tensor_of(call.model, slopes)
    return known is not None and bool((known <= 1).all())


def _softmax(call: Insert, node: Node) -> Node:
    x, dim = node.args[:2]
    below = call(_aten.sub.Tensor, x, call(_aten.amax.default, x, [dim], True))
    return call(node.target, below, *node.args[1:], **node.kwargs)


# The form with 16 bits, and how many operators it has.
_RULES: dict[str, tuple[Callable[[Insert, Node], Node], int]] = {
    **dict.fromkeys(("aten.hardsigmoid.default", "aten.hardsigmoid_.default"), (_hard_sigmoid, 2)),
    **dict.fromkeys(("aten.hardswish.default", "aten.hardswish_.default"), (_hard_swish, 3)),
    **dict.fromkeys(("aten.silu.default", "aten.silu_.default"), (_silu, 2)),
    "aten.gelu.default": (_gelu, 9), "aten.prelu.default": (_prelu, 2), **dict.fromkeys(SOFTMAX, (_softmax, 3)),
}  # fmt: skip
