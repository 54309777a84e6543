"""DecomposeProducts: turns a product of two computed matrices into a batched product with one batch.

Before:  y = mm(a, b)                                       y = linear(x, w, bias)
After:   y = bmm(a.unsqueeze(0), b.unsqueeze(0)).squeeze    y = bmm(x, w transposed) + bias

A quantized linear layer needs constant weights, a batched product does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule

from openneutron.executorch.fx import operator_name, value_of
from openneutron.executorch.quantize.passes.decompose.decompose_composites import inline

_VECTOR, _MATRIX = 1, 2


def decompose_products(model: GraphModule) -> int:
    """Rewrite the graph in place.

    Returns the number of rewritten nodes. Products with weights stay, and those that are batched already.
    """
    computed = _computed_nodes(model)
    count = 0
    for node in list(model.graph.nodes):
        name = operator_name(node)
        if name not in _DEFINITIONS or value_of(node).dtype != torch.float32:
            continue
        right = node.args[2] if name == "aten.addmm.default" else node.args[1]
        if right not in computed or value_of(right).dim() > _MATRIX:
            continue
        inline(model, node, _DEFINITIONS[name])
        count += 1
    return count


def _computed_nodes(model: GraphModule) -> set[Any]:
    """Return the nodes that depend on an input of the program."""
    found: set[Any] = set()
    for node in model.graph.nodes:
        if node.op == "placeholder" or any(source in found for source in node.all_input_nodes):
            found.add(node)
    return found


def _product(a: Tensor, b: Tensor) -> Tensor:
    rows = a.reshape(1, -1, a.shape[-1])
    columns = b.unsqueeze(1) if b.dim() == _VECTOR else b
    shape = [*a.shape[:-1], *b.shape[1:]]
    return torch.bmm(rows, columns.unsqueeze(0)).reshape(shape)


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    result = _product(x, weight.t() if weight.dim() == _MATRIX else weight)
    return result if bias is None else result + bias


def _addmm(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    product = _product(a, b)
    product = product if alpha == 1 else product * alpha
    return product + (x if beta == 1 else x * beta)


_DEFINITIONS: dict[str, Callable[..., Tensor]] = {
    "aten.mm.default": _product, "aten.matmul.default": _product, "aten.mv.default": _product,
    "aten.dot.default": _product, "aten.linear.default": _linear, "aten.addmm.default": _addmm,
}  # fmt: skip
