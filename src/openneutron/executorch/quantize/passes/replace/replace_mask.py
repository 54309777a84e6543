"""ReplaceMask: replaces a comparison that is used as a number by a choice between 1 and 0.

Before:  y = x * (x > 0.5)                                 y = (a > b).float()
After:   y = x * where(x > 0.5, 1.0, 0.0)                  y = where(a - b > 0, 1.0, 0.0)
"""

from __future__ import annotations

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import operator_name, value_of
from openneutron.executorch.quantize.passes._booleans import as_number, is_made_of_comparisons
from openneutron.executorch.quantize.passes._insert import Insert

_CASTS = frozenset({"aten.to.dtype", "aten._to_copy.default", "aten.type_as.default"})
_PRODUCT = "aten.mul.Tensor"


def replace_mask(model: GraphModule) -> int:
    """Rewrite the graph in place.

    Returns the number of rewritten nodes. A mask that is itself a result, or counted, stays a mask.
    """
    count = 0
    for node in list(model.graph.nodes):
        name = operator_name(node)
        if (name not in _CASTS and name != _PRODUCT) or value_of(node).dtype != torch.float32:
            continue
        for mask in [one for one in node.all_input_nodes if _is_mask(one)]:
            if not is_made_of_comparisons(model, mask):
                continue
            number = as_number(model, Insert(model, node), mask)
            if name == _PRODUCT:
                node.replace_input_with(mask, number)
            else:
                node.replace_all_uses_with(number)
                model.graph.erase_node(node)
            count += 1
    return count


def _is_mask(node: Node) -> bool:
    value = value_of(node)
    return isinstance(value, torch.Tensor) and value.dtype == torch.bool
