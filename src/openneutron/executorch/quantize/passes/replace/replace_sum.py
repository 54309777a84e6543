"""ReplaceSum: computes a sum in 16 bits as a mean with a range of its own, because LiteRT has no 16-bit kernel for sums.

Before:  v = mul(sum(d * d, -1), 1 / n)            s = sum(x, -1)
After:   v = mean(d * d, -1)                       s = mul(mean(x, -1), n)

The variance of a norm is such a sum: where one token's is a hundred times that of others, these share a few of 256 steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, is_static, operator_name, shape_of
from openneutron.executorch.quantize.passes._insert import Insert

OWN_RANGE_KEY: Final = "openneutron_own_range"  # of a mean that does not share its input's range
_SUM: Final = "aten.sum.dim_IntList"
_aten = torch.ops.aten


def replace_sum(model: GraphModule, is_wide: Callable[[Node], bool]) -> int:
    """Rewrite in place the sums that `is_wide` chooses; returns their number."""
    found = [node for node in model.graph.nodes if operator_name(node) == _SUM and is_wide(node)]
    found = [node for node in found if arguments(node)["dim"] and is_static(node.args[0])]
    for node in found:
        given, call = arguments(node), Insert(model, node)
        count = math.prod(shape_of(given["self"])[dim] for dim in given["dim"])
        mean = call(_aten.mean.dim, given["self"], given["dim"], given["keepdim"])
        mean.meta[OWN_RANGE_KEY] = True
        for user in list(node.users):
            if operator_name(user) == "aten.mul.Tensor" and user.args[1] == 1.0 / count:
                user.replace_all_uses_with(mean)
                model.graph.erase_node(user)
        if node.users:
            node.replace_all_uses_with(call(_aten.mul.Tensor, mean, float(count)))
        model.graph.erase_node(node)
    return len(found)
