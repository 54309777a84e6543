"""MaskProbabilities: attention with a mask and 16-bit probabilities gives forbidden positions no weight.

LiteRT's 16-bit softmax gives each value far below the largest two steps of 2^-15. Of a cache with 500 empty or stale rows they
take 3 % of the sum, and add what happens to be in these rows.

Before:  y = softmax(scores * keep + …) @ v            keep is 0 for forbidden positions
After:   p = softmax(scores * keep + …) * keep
         y = (p @ v) * (2 - n * mean(p))                for n positions: 1 / s is 2 - s up to (1 - s)²

The mean has a 16-bit kernel, the sum has none.

In float the sum is 1, and nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.many_classes import PRODUCTS, SOFTMAX, WIDE_KEY
from openneutron.executorch.quantize.passes._attributes import tensor_of
from openneutron.executorch.quantize.passes._insert import Insert
from openneutron.executorch.quantize.passes._lookups import VIEWS, lookup_of

_SUMS: Final = frozenset({"aten.add.Tensor", "aten.add_.Tensor"})
_DEPTH: Final = 4  # sums between the softmax and the product with the mask
_aten = torch.ops.aten


def mask_probabilities(model: GraphModule, is_wide: Callable[[Node], bool]) -> int:
    """Rewrite in place the products that read probabilities in 16 bits; returns their number."""
    count = 0
    for node in list(model.graph.nodes):
        if operator_name(node) not in SOFTMAX or not is_wide(node) or not _is_over_last(node):
            continue
        products = [user for user in node.users if operator_name(user) in PRODUCTS and user.args[0] is node]
        keep = _keep_factor(model, node.args[0], _DEPTH) if products and len(products) == len(node.users) else None
        if keep is None or not _fits(keep, node):
            continue
        node.meta[WIDE_KEY] = True
        first = products[0]
        call = Insert(model, first)
        kept = call(_aten.mul.Tensor, node, keep)
        mean = call(_aten.mean.dim, kept, [-1], True)
        total = call(_aten.mul.Tensor, mean, float(value_of(node).shape[-1]))
        factor = call(_aten.rsub.Scalar, total, 2.0)
        for product in products:
            call = Insert(model, product)
            made = call(_aten.mul.Tensor, call(product.target, kept, product.args[1]), factor)
            product.replace_all_uses_with(made)
            model.graph.erase_node(product)
            count += 1
    return count


def _is_over_last(node: Node) -> bool:
    return int(arguments(node)["dim"]) in (-1, value_of(node).dim() - 1)


def _keep_factor(model: GraphModule, scores: Any, depth: int) -> Node | None:
    """Return the factor of masked scores that is 0 for forbidden positions and 1 for others."""
    if not isinstance(scores, Node) or not depth:
        return None
    name = operator_name(scores)
    if name in VIEWS or name in _SUMS:
        found = (_keep_factor(model, one, depth - 1) for one in scores.args[:2])
        return next((one for one in found if one is not None), None)
    if name == "aten.mul.Tensor":
        return next((one for one in scores.args[:2] if _is_keep(model, one)), None)
    return None


def _is_keep(model: GraphModule, node: Any) -> bool:
    """Return whether a node is a constant, or are rows of one, of zeros and ones."""
    if not isinstance(node, Node):
        return False
    source = node
    while operator_name(source) in VIEWS and isinstance(source.args[0], Node):
        source = source.args[0]
    data = tensor_of(model, source)
    if data is None:
        found = lookup_of(model, source)
        data = None if found is None else found.table
    return data is not None and bool(((data == 0) | (data == 1)).all()) and bool((data == 0).any())


def _fits(keep: Node, node: Node) -> bool:
    """Return whether a mask spreads over the probabilities; views between them may have another rank."""
    shape, wanted = value_of(keep).shape, value_of(node).shape
    if len(shape) > len(wanted):
        return False
    return all(size in (1, other) for size, other in zip(reversed(shape), reversed(wanted), strict=False))
