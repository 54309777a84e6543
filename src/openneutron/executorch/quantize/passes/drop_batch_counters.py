"""DropBatchCounters: removes the counter of batches that a batch norm updates in training and that nothing reads.

Before:  count = add_(num_batches_tracked, 1); y = batch_norm(x, …)
After:   y = batch_norm(x, …)

A module that is called twice counts twice, and convert_pt2e fails on that chain of additions.
"""

from __future__ import annotations

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import operator_name


def drop_batch_counters(model: GraphModule) -> int:
    """Remove the counters in place; returns the number of removed additions."""
    count = 0
    for node in reversed(list(model.graph.nodes)):
        if operator_name(node) == "aten.add_.Tensor" and not node.users and _counts(model, node.args[0]):
            model.graph.erase_node(node)
            count += 1
    return count


def _counts(model: GraphModule, node: object) -> bool:
    """Return whether a value is a batch counter, before or after earlier additions to it."""
    while isinstance(node, Node) and operator_name(node) == "aten.add_.Tensor":
        node = node.args[0]
    if not isinstance(node, Node) or not str(node.target).endswith("num_batches_tracked"):
        return False
    return node.op == "get_attr" and model.get_buffer(str(node.target)).dtype == torch.int64
