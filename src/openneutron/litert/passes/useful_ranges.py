"""Ranges of float tensors without what their only reader takes no notice of.

Before:  CONV_2D from -40 to 5 -> HARD_SWISH, which is 0 below -3
After:   CONV_2D from -3 to 5, in steps a sixth of those before
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from openneutron.litert.graph import Graph

Range = tuple[float, float]
# A logistic function is within half an INT8 step of its limits beyond 8, a hyperbolic tangent beyond 4.
_NOTICED: Final[dict[str, Range]] = {
    "HARD_SWISH": (-3.0, math.inf), "LOGISTIC": (-8.0, 8.0), "TANH": (-4.0, 4.0), "RELU": (0.0, math.inf),
    "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0), "RELU_0_TO_1": (0.0, 1.0),
}  # fmt: skip


def useful_ranges(graph: Graph, ranges: Mapping[str, Range]) -> dict[str, Range]:
    """Return ranges by tensor name, each cut to what all readers of the tensor notice.

    Example:
        >>> useful_ranges(model.main, {"conv": (-40.0, 5.0)})
        {'conv': (-3.0, 5.0)}
    """
    found = dict(ranges)
    readers = graph.consumers()
    for at, tensor in enumerate(graph.tensors):
        codes = {graph.operators[reader].code for reader in readers.get(at, ())}
        if tensor.name not in found or not codes or codes - set(_NOTICED) or at in (*graph.inputs, *graph.outputs):
            continue
        low = min(_NOTICED[code][0] for code in codes)
        high = max(_NOTICED[code][1] for code in codes)
        before = found[tensor.name]
        found[tensor.name] = (min(max(before[0], low), high), max(min(before[1], high), low))
    return found
