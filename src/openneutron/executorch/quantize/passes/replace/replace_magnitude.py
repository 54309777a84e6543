"""ReplaceMagnitude: computes the magnitude of a complex number without squares.

Before:  y = sqrt(a * a + b * b)
After:   x, y = max(|a|, |b|), min(|a|, |b|)                    an angle of 0 to 45 degrees
         x, y = x + t * y, |y - t * x|                          turned by half the angle that is left, and again
         y = k * x                                              the length: what is left of the angle no longer matters

Squares in 16 bits leave a length 181 steps from 0 to the largest, so quiet bins of a spectrum vanish beside a loud one; so do
LiteRT's square roots, which it has in 8 bits alone. Here 32,767 steps are left. In 8 bits the operators stay.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import is_dequantize, is_quantize, operator_name
from openneutron.executorch.quantize.passes._insert import Insert

_ROOTS = frozenset({"aten.sqrt.default", "aten.sqrt_.default"})
_aten = torch.ops.aten
# Rotations by 22.5, 11.25, ... degrees. The fifth leaves up to 1.4, whose cosine is within 0.015 % of the middle: 76 dB. With
# 64 dB, those of four, small values behind a spectrum would change by more than rounding does. A reader of 8 bits rounds to
# 0.4 % of the largest value; three leave 0.24 % of each, 52 dB.
_TURNS = 5
_FEW_TURNS = 3
OPERATORS = 6 * _FEW_TURNS + 3  # that a root becomes in front of 8 bits


def replace_magnitude(model: GraphModule, is_wide: Callable[[Node], bool]) -> int:
    """Rewrite in place the roots that `is_wide` chooses; returns the number of changed nodes."""
    count = 0
    for node in list(model.graph.nodes):
        parts = _parts(node) if operator_name(node) in _ROOTS and is_wide(node) else None
        if parts is None:
            continue
        turns = _TURNS if all(map(is_wide, node.users)) else _FEW_TURNS
        node.replace_all_uses_with(_length(Insert(model, node), *parts, turns))
        count += 1
    if count:
        model.graph.eliminate_dead_code()
    return count


def is_magnitude(node: Node) -> bool:
    """Return whether a node is a root that has 16 bits by its rewritten form, in a quantized graph too."""
    return operator_name(node) in _ROOTS and _parts(node) is not None


def _parts(root: Node) -> tuple[Node, Node] | None:
    """Return the two values that are squared and added."""
    total = _skip_quantization(root.all_input_nodes[0])
    if operator_name(total) != "aten.add.Tensor" or len(total.args) != 2 or total.kwargs:
        return None
    first, second = (_squared_operand(one) for one in total.args)
    return None if first is None or second is None else (first, second)


def _squared_operand(node: object) -> Node | None:
    node = _skip_quantization(node) if isinstance(node, Node) else node
    if not isinstance(node, Node) or not node.args or not isinstance(node.args[0], Node):
        return None
    name, x = operator_name(node), _skip_quantization(node.args[0])
    is_square = (
        name == "aten.square.default"
        or (name == "aten.mul.Tensor" and isinstance(node.args[1], Node) and _skip_quantization(node.args[1]) is x)
        or (name == "aten.pow.Tensor_Scalar" and node.args[1] == 2)
    )
    return x if is_square else None


def _skip_quantization(node: Node) -> Node:
    """Return the operator in front of quantize and dequantize nodes."""
    while (is_quantize(node) or is_dequantize(node)) and isinstance(node.args[0], Node):
        node = node.args[0]
    return node


def _length(call: Insert, a: Node, b: Node, turns: int) -> Node:
    a, b = _magnitude(call, a), _magnitude(call, b)
    x, y = call(_aten.maximum.default, a, b), call(_aten.minimum.default, a, b)
    angle, grown = math.pi / 4, 1.0
    for turn in range(turns):
        angle /= 2
        slope = math.tan(angle)
        grown /= math.cos(angle)  # the rotation without its cosine makes the number longer
        if turn < turns - 1:
            down = call(_aten.mul.Tensor, x, slope)
            x = call(_aten.add.Tensor, x, call(_aten.mul.Tensor, y, slope))
            y = call(_aten.maximum.default, call(_aten.sub.Tensor, y, down), call(_aten.sub.Tensor, down, y))
    # The remaining angle makes the result shorter by up to its cosine: the middle is right on average.
    factor = 2 / (1 + math.cos(angle)) / grown
    return call(_aten.add.Tensor, call(_aten.mul.Tensor, x, factor), call(_aten.mul.Tensor, y, factor * slope))


def _magnitude(call: Insert, x: Node) -> Node:
    return call(_aten.maximum.default, x, call(_aten.mul.Tensor, x, -1.0))
