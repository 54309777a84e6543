"""Softmax over many classes in a 16-bit network: it is found in 8 bits, below its largest value.

LiteRT's table of 16 bits ends at exp(-10), and each class further down gets two steps of 2^-15: of 256 classes they take
1.5 % of the sum, of 6,000 a third. Its kernel of 8 bits leaves them out.

Before:  y = softmax(x)                     x in 16 bits
After:   y = softmax(x - amax(x))           x and the difference in 16 bits, read by the softmax in 8 bits from -`reach` to 0
"""

from __future__ import annotations

import math

from torch.fx import Node

from openneutron.executorch.fx import arguments, shape_of

SOFTMAX = frozenset({"aten.softmax.int", "aten._softmax.default"})
MOST_WIDE = 256  # classes that the softmax of 16 bits is good for


def is_over_many(node: Node) -> bool:
    """Whether a softmax has more classes than LiteRT's of 16 bits is good for."""
    return _classes(node) > MOST_WIDE


def reach(node: Node) -> float:
    """How far below the largest value counts: all classes further down have half a step of 1/256 together."""
    return math.log(512 * _classes(node))


def _classes(node: Node) -> int:
    return int(shape_of(node)[arguments(node)["dim"]])
