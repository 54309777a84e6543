"""ReplaceSubtractedMask: a mask that is subtracted is added with the other sign, which is the form that other passes know.

Before:  y = x - mask * 1e4
After:   y = x + mask * -1e4                      the same floats
"""

from __future__ import annotations

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name
from openneutron.executorch.quantize.passes._insert import Insert
from openneutron.executorch.quantize.passes._masks import NEVER


def replace_subtracted_mask(model: GraphModule) -> int:
    """Rewrite the graph in place; returns the number of rewritten differences."""
    count = 0
    for node in list(model.graph.find_nodes(op="call_function", target=torch.ops.aten.sub.Tensor)):
        x, product = node.args[:2]
        if not isinstance(x, Node) or not isinstance(product, Node) or arguments(node)["alpha"] != 1:
            continue
        if operator_name(product) != "aten.mul.Tensor":
            continue
        mask, number = product.args[:2]
        if not isinstance(number, (int, float)) or number < -NEVER:
            continue
        call = Insert(model, node)
        made = call(torch.ops.aten.add.Tensor, x, call(torch.ops.aten.mul.Tensor, mask, -number))
        node.replace_all_uses_with(made)
        model.graph.erase_node(node)
        count += 1
    return count
