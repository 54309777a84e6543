"""ReplaceOperands: rewrites sums and products so that both operands are float tensors.

Before:  y = add(x, z, alpha=0.5)           y = mul(x, [1, 2, 3]), integers or booleans
After:   y = add(x, mul(z, 0.5))            y = mul(x, [1.0, 2.0, 3.0])
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import add_constant, tensor_of
from openneutron.executorch.quantize.passes._insert import Insert

_SUMS = frozenset({"aten.add.Tensor", "aten.sub.Tensor", "aten.rsub.Scalar"})
_BINARY = _SUMS | {"aten.mul.Tensor", "aten.div.Tensor"}


def replace_operands(model: GraphModule) -> int:
    """Rewrite in place; returns the number of rewritten operands."""
    count = 0
    for node in list(model.graph.nodes):
        if operator_name(node) not in _BINARY or value_of(node).dtype != torch.float32:
            continue
        count += _move_factor(model, node)
        for source in list(node.all_input_nodes):
            data = tensor_of(model, source)
            if data is not None and not data.is_floating_point() and not data.is_complex():
                with model.graph.inserting_before(node):
                    node.replace_input_with(source, add_constant(model, "_number", data.to(torch.float32)))
                count += 1
    return count


def _move_factor(model: GraphModule, node: Node) -> int:
    """Move the factor of a sum into a product: it scales the addend, or for `rsub` with `alpha` the tensor."""
    given = arguments(node)
    alpha = given.get("alpha", 1)
    if operator_name(node) not in _SUMS or alpha == 1:
        return 0
    x, other = given["self"], given["other"]
    if operator_name(node) == "aten.rsub.Scalar":
        node.args = (_times(model, node, x, alpha), other)
    else:
        node.args = (x, _times(model, node, other, alpha))
    node.kwargs = {key: value for key, value in node.kwargs.items() if key != "alpha"}
    return 1


def _times(model: GraphModule, node: Node, x: Any, factor: float) -> Any:
    return Insert(model, node)(torch.ops.aten.mul.Tensor, x, factor) if isinstance(x, Node) else x * factor
