"""Softmax over many classes in a 16-bit network: computed in 8 bits, relative to the largest value.

LiteRT's 16-bit lookup table ends at exp(-10), and each class further down gets two steps of 2^-15: 256 such classes take
1.5 % of the sum, 6,000 take a third. Its 8-bit kernel leaves them out.

Before:  y = softmax(x)                     x in 16 bits
After:   y = softmax(x - amax(x))           x and the difference in 16 bits, read by the softmax in 8 bits from -`reach` to 0
"""

from __future__ import annotations

import math

from torch.fx import Node

from openneutron.executorch.fx import arguments, operator_name, shape_of

SOFTMAX = frozenset({"aten.softmax.int", "aten._softmax.default"})
PRODUCTS = frozenset({"aten.matmul.default", "aten.bmm.default"})
WIDE_KEY = "openneutron_wide_probabilities"  # of softmaxes whose forbidden classes are multiplied by 0 behind them
MOST_WIDE = 256  # up to so many classes the 16-bit softmax is accurate enough


def is_over_many(node: Node) -> bool:
    """Return whether a softmax has too many classes for 16 bits: more than `MOST_WIDE`, unless a mask follows it."""
    return _classes(node) > MOST_WIDE and WIDE_KEY not in node.meta


def is_attention(node: Node) -> bool:
    """Return whether products of matrices read the probabilities of a softmax."""
    return any(operator_name(user) in PRODUCTS for user in node.users)


def reach(node: Node) -> float:
    """Return how far below the largest value inputs count: all classes further down add up to half a step of 1/256."""
    return math.log(512 * _classes(node))


def _classes(node: Node) -> int:
    return int(shape_of(node)[arguments(node)["dim"]])
