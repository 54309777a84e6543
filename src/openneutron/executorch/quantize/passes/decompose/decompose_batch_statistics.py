"""DecomposeBatchStatistics: turns a batch norm without running statistics into a group norm over the given batch.

Before:  y = batch_norm(x, g, b, None, None, training=True), of one sample
After:   y = group_norm(x, channels, g, b)

With several samples, channels come first and the samples of each lie side by side:
  transpose(0, 1) → [1, C, N * …] → group_norm → [C, N, …] → transpose(0, 1)

torchao folds every batch norm that it finds into the convolution before it, and fails on one that has no statistics.
"""

from __future__ import annotations

import math

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.passes._insert import Insert

_NORM = "aten.batch_norm.default"
_FUNCTIONAL = "aten._native_batch_norm_legit.no_stats"  # the same, in programs without in-place changes


def decompose_batch_statistics(model: GraphModule) -> int:
    """Rewrite the graph in place; returns the number of rewritten batch norms. Those with running statistics stay."""
    count = 0
    for node in list(model.graph.nodes):
        name = operator_name(node)
        if name == _NORM and arguments(node)["running_mean"] is None:
            node.replace_all_uses_with(_group_norm(model, node))
        elif name == _FUNCTIONAL and all(user.args[1] == 0 for user in node.users):
            made = _group_norm(model, node)
            for user in list(node.users):
                user.replace_all_uses_with(made)
                model.graph.erase_node(user)
        else:
            continue
        model.graph.erase_node(node)
        count += 1
    if count:
        model.graph.eliminate_dead_code()
        model.recompile()
    return count


def _group_norm(model: GraphModule, node: Node) -> Node:
    given = arguments(node)
    x = given["input"]
    samples, channels, *sizes = value_of(x).shape
    call, aten = Insert(model, node), torch.ops.aten
    rest = (given["weight"], given["bias"], given["eps"])
    if samples == 1 and sizes:
        return call(aten.group_norm.default, x, channels, *rest)
    first = call(aten.transpose.int, x, 0, 1)
    rows = call(aten.reshape.default, first, [1, channels, samples * math.prod(sizes)])
    normed = call(aten.group_norm.default, rows, channels, *rest)
    return call(aten.transpose.int, call(aten.reshape.default, normed, [channels, samples, *sizes]), 0, 1)
