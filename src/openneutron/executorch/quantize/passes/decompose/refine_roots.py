"""RefineRoots: squares and reciprocal square roots in 16 bits, from two tables of 8 bits and Newton's method.

LiteRT has no 16-bit kernel for them. A norm divides by the root of a mean of squares whose range spans several powers of ten,
so that most of its values share a few of 256 steps.

Before:  y = rsqrt(v)                   z = div(x, sqrt(v))                           s = pow(x, 2)
After:   y = minimum(rsqrt(v), rsqrt(v))    z = mul(x, rsqrt(v)), in the same way     s = mul(x, x)
         y = y * (1.5 - v / 2 * y * y)      three times

One table reads the whole range of v, the other the lowest part of it, so that larger values saturate: the smaller result is the
right one. A relative error e becomes 1.5 e², as long as y is not too large: of 30 %, as a value of one step has it, 0.1 %
remain. In float the steps change nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import operator_name
from openneutron.executorch.quantize.passes._insert import Insert
from openneutron.executorch.quantize.specs import RANGE_KEY

RANGES: Final = (1.0, 1 / 32)  # of the largest value; together they tell values apart that differ by 16,000
_STEPS: Final = 3
_ROOTS: Final = frozenset({"aten.sqrt.default", "aten.sqrt_.default"})
_DIVISIONS: Final = frozenset({"aten.div.Tensor", "aten.div_.Tensor"})
_RECIPROCALS: Final = frozenset({"aten.reciprocal.default", "aten.reciprocal_.default"})
_RECIPROCAL_ROOTS: Final = frozenset({"aten.rsqrt.default", "aten.rsqrt_.default"})
_POWER: Final = "aten.pow.Tensor_Scalar"
_aten = torch.ops.aten


def refine_roots(model: GraphModule, is_wide: Callable[[Node], bool]) -> int:
    """Rewrite in place the nodes that `is_wide` chooses; returns the number of changed nodes."""
    count = 0
    for node in list(model.graph.nodes):
        made = _written_out(node) if is_wide(node) else None
        if made is not None:
            node.replace_all_uses_with(made)
            model.graph.erase_node(node)
            count += 1
    return count


def _written_out(node: Node) -> Node | None:
    """Insert the operators of a square, a reciprocal square root or a division by a root, and return their result."""
    name, call = operator_name(node), Insert(node.graph.owning_module, node)
    if name in _RECIPROCAL_ROOTS:
        return _refine(call, node.args[0])
    if name == "aten.square.default" or (name == _POWER and node.args[1] == 2):
        return call(_aten.mul.Tensor, node.args[0], node.args[0])
    if name == _POWER and node.args[1] == -0.5:
        return _refine(call, node.args[0])
    if name in _RECIPROCALS and operator_name(node.args[0]) in _ROOTS:
        return _refine(call, node.args[0].args[0])
    if name in _DIVISIONS and len(node.args) == 2 and isinstance(node.args[1], Node):
        x, root = node.args
        if operator_name(root) in _ROOTS:
            return call(_aten.mul.Tensor, x, _refine(call, root.args[0]))
    return None


def _refine(call: Insert, v: Node) -> Node:
    half = call(_aten.mul.Tensor, v, 0.5)
    tables = [call(_aten.rsqrt.default, v) for _ in RANGES]
    for table, part in zip(tables, RANGES, strict=True):
        table.meta[RANGE_KEY] = part
    y = call(_aten.minimum.default, *tables)
    for _ in range(_STEPS):
        square = call(_aten.mul.Tensor, call(_aten.mul.Tensor, half, y), y)
        y = call(_aten.mul.Tensor, y, call(_aten.rsub.Scalar, square, 1.5))
    return y
