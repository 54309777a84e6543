"""ReplaceDivision: replaces a division by a tensor by a product with its reciprocal, a lookup table or a constant.

Before:  y = div(x, std)                    y = div(x, expand_as(norm, x))
After:   y = mul(x, 1 / std)                y = mul(x, reciprocal(norm))
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import add_constant, tensor_of
from openneutron.executorch.quantize.passes._insert import Insert

_DIVISIONS = frozenset({"aten.div.Tensor", "aten.div_.Tensor", "aten.divide.Tensor", "aten.true_divide.Tensor"})
_EXPANDS = frozenset({"aten.expand.default", "aten.expand_as.default"})


def replace_division(model: GraphModule) -> int:
    """Rewrite the graph in place; returns the number of rewritten nodes. A constant divisor with a zero in it stays."""
    count = 0
    for node in list(model.graph.nodes):
        if operator_name(node) not in _DIVISIONS or len(node.args) != 2 or node.kwargs:
            continue
        x, divisor = node.args
        if not all(_is_float(one) for one in (x, divisor)):
            continue
        assert isinstance(divisor, Node)
        factor = _reciprocal(model, node, divisor)
        if factor is None:
            continue
        node.replace_all_uses_with(Insert(model, node)(torch.ops.aten.mul.Tensor, x, factor))
        model.graph.erase_node(node)
        count += 1
    return count


def _reciprocal(model: GraphModule, node: Node, divisor: Node) -> Node | None:
    data = tensor_of(model, divisor)
    if data is not None:
        inverse = 1.0 / data
        if not bool(torch.isfinite(inverse).all()):
            return None
        with model.graph.inserting_before(node):
            return add_constant(model, "_reciprocal", inverse)
    while operator_name(divisor) in _EXPANDS and isinstance(divisor.args[0], Node):
        divisor = divisor.args[0]  # fewer elements, and the product broadcasts anyway
    return Insert(model, node)(torch.ops.aten.reciprocal.default, divisor)


def _is_float(x: Any) -> bool:
    value = value_of(x) if isinstance(x, Node) else None
    return isinstance(value, torch.Tensor) and value.dtype == torch.float32
