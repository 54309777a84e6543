"""KeepCountersFloat: states that only count stay in float on the CPU, exactly.

Before:  count = add(count, 1)                    in INT8: sticks at the largest value that calibration saw
After:   the same, marked: neither it nor what is computed from it and constants alone is quantized

No input has an influence on such a state, so its range follows from the number of calls and not from calibration.
"""

from __future__ import annotations

import math
from typing import Final

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import FloatReason, changes, is_changed, value_of
from openneutron.executorch.quantize.check.keep_float import mark_float

_INPUT: Final = ""  # stands for every input of the model among the names of states
_MOST_ELEMENTS: Final = 1024  # a larger state costs the CPU more than counting is worth


def keep_counters_float(model: GraphModule) -> int:
    """Mark the operators on counters; returns how many there are."""
    sources = _sources(model)
    counters = _counters(model, sources)
    marked = [
        node
        for node, names in sources.items()
        if node.op == "call_function" and names and names <= counters and _is_small_float(node)
    ]
    for node in marked:
        mark_float(node, FloatReason.COUNTER)
    return len(marked)


def _sources(model: GraphModule) -> dict[Node, frozenset[str]]:
    """Return for each node the states, and the inputs as one, that its value depends on."""
    found: dict[Node, frozenset[str]] = {}
    for node in model.graph.nodes:
        if node.op == "placeholder":
            found[node] = frozenset({_INPUT})
        elif node.op == "get_attr":
            found[node] = frozenset({str(node.target)} if is_changed(node) else ())
        else:
            found[node] = frozenset().union(*(found[one] for one in node.all_input_nodes))
    return found


def _counters(model: GraphModule, sources: dict[Node, frozenset[str]]) -> frozenset[str]:
    """Return the states whose new values depend on nothing but such states."""
    written: dict[str, set[str]] = {}
    for node in model.graph.find_nodes(op="get_attr"):
        for user in node.users:
            if changes(user, node):
                written.setdefault(str(node.target), set()).update(sources[user])
    counters = frozenset(written)
    while True:
        left = frozenset(name for name in counters if written[name] <= counters)
        if left == counters:
            return counters
        counters = left


def _is_small_float(node: Node) -> bool:
    value = value_of(node)
    return isinstance(value, torch.Tensor) and value.is_floating_point() and math.prod(value.shape) <= _MOST_ELEMENTS
