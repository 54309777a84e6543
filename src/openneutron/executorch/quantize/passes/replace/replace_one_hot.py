"""ReplaceOneHot: replaces one-hot rows of positions by rows of an identity matrix.

Before:  y = one_hot(i, n).float()
After:   y = embedding(identity, i)

PyTorch demands that positions lie in [0, n), as the lookup does.
"""

from __future__ import annotations

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import add_constant
from openneutron.executorch.quantize.passes._insert import MASK_KEY, Insert

_CASTS = frozenset({"aten.to.dtype", "aten._to_copy.default", "aten.type_as.default"})
_MOST = 1024  # classes: the matrix takes the square of it in bytes


def replace_one_hot(model: GraphModule) -> int:
    """Rewrite the graph in place; returns the number of rewritten nodes. Rows that are read as integers stay."""
    count = 0
    for node in list(model.graph.nodes):
        if operator_name(node) not in _CASTS or value_of(node).dtype != torch.float32:
            continue
        hot = node.args[0]
        if not isinstance(hot, Node) or operator_name(hot) != "aten.one_hot.default":
            continue
        classes = int(arguments(hot)["num_classes"])
        if not 0 < classes <= _MOST:
            continue
        with model.graph.inserting_before(node):
            identity = add_constant(model, "_identity", torch.eye(classes))
        made = Insert(model, node)(torch.ops.aten.embedding.default, identity, hot.args[0])
        made.meta[MASK_KEY] = True
        node.replace_all_uses_with(made)
        model.graph.erase_node(node)
        count += 1
    return count
