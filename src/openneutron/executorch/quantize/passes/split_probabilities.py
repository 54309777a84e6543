"""SplitProbabilities: keeps small probabilities in attention over many tokens.

LiteRT's softmax gives probabilities in steps of 1/256. Of 512 tokens most have less than half a step and become zero. So
probabilities that a matrix product reads are computed in two parts, each with 256 steps:

Before:  y = softmax(s) @ v
After:   p = (s - max s) - log sum exp(s - max s)             the logarithm of the probabilities
         y = exp(min(p, -log k) + log k) @ v / k              those up to 1/k, in steps of 1/(256 k)
             + relu(exp(p) - 1/k) @ v                         the excess of larger ones over 1/k

In float that is the same function. k grows with the number of tokens, so that an equal share has `LEVELS` steps.
"""

from __future__ import annotations

import math

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.passes._insert import Insert

_SOFTMAX = frozenset({"aten.softmax.int", "aten._softmax.default"})
_PRODUCTS = frozenset({"aten.matmul.default", "aten.bmm.default"})
TOKENS = 64  # with so few an equal share has at least four of LiteRT's steps, and one product is cheaper than two
MIN_LOG_PROBABILITY = -12.0  # exp(-12) is 6e-6: less likely tokens take no steps away from the rest
LEVELS = 16  # steps of an equal share; more would leave too few of 256 for larger ones


def split_probabilities(model: GraphModule) -> int:
    """Rewrite in place; returns the number of split products."""
    count = 0
    for node in list(model.graph.nodes):
        if operator_name(node) not in _SOFTMAX or not _is_over_many_tokens(node):
            continue
        products = [user for user in node.users if operator_name(user) in _PRODUCTS and user.args[0] is node]
        if not products:
            continue
        small, large, factor = _parts(Insert(model, node), node)
        for product in products:
            call, aten = Insert(model, product), torch.ops.aten
            first = call(product.target, small, product.args[1])
            second = call(product.target, large, product.args[1])
            made = call(aten.add.Tensor, call(aten.mul.Tensor, first, 1.0 / factor), second)
            product.replace_all_uses_with(made)
            model.graph.erase_node(product)
            count += 1
    return count


def _is_over_many_tokens(node: Node) -> bool:
    value = value_of(node)
    last = int(arguments(node)["dim"]) in (-1, value.dim() - 1)
    return last and value.dtype == torch.float32 and int(value.shape[-1]) > TOKENS


def _parts(call: Insert, node: Node) -> tuple[Node, Node, float]:
    """Return k times the probabilities up to 1/k, the excess of the others over 1/k, and k."""
    aten = torch.ops.aten
    factor = float(2 ** math.ceil(math.log2(int(value_of(node).shape[-1]) * LEVELS / 256)))
    scores = node.args[0]
    apart = call(aten.sub.Tensor, scores, call(aten.amax.default, scores, [-1], True))
    apart = call(aten.clamp.default, apart, MIN_LOG_PROBABILITY, None)
    total = call(aten.log.default, call(aten.sum.dim_IntList, call(aten.exp.default, apart), [-1], True))
    logarithm = call(aten.clamp.default, call(aten.sub.Tensor, apart, total), MIN_LOG_PROBABILITY, None)
    low = call(aten.clamp.default, call(aten.add.Tensor, logarithm, math.log(factor)), None, 0.0)
    high = call(aten.relu.default, call(aten.sub.Tensor, call(aten.exp.default, logarithm), 1.0 / factor))
    return call(aten.exp.default, low), high, factor
