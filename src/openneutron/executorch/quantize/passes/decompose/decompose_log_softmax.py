"""DecomposeLogSoftmax: decomposes the logarithm of a softmax into operators that have INT8 forms.

Before:  y = log_softmax(x, dim)
After:   d = x - amax(x, dim); y = d - log(sum(exp(d), dim))

LiteRT's own operator fixes the result to [-16, 0]; here it has the range that calibration finds.
"""

from __future__ import annotations

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.passes._insert import Insert

_NAMES = frozenset({"aten.log_softmax.int", "aten._log_softmax.default"})


def decompose_log_softmax(model: GraphModule) -> int:
    """Rewrite the graph in place; returns the number of rewritten nodes."""
    found = [node for node in model.graph.nodes if operator_name(node) in _NAMES and _is_float(node)]
    for node in found:
        given = arguments(node)
        call, aten = Insert(model, node), torch.ops.aten
        dims = [given["dim"]]
        below = call(aten.sub.Tensor, given["self"], call(aten.amax.default, given["self"], dims, True))
        total = call(aten.sum.dim_IntList, call(aten.exp.default, below), dims, True)
        node.replace_all_uses_with(call(aten.sub.Tensor, below, call(aten.log.default, total)))
        model.graph.erase_node(node)
    return len(found)


def _is_float(node: Node) -> bool:
    return all(value_of(one).dtype == torch.float32 for one in (node, node.args[0]))
