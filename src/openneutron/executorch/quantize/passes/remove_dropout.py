"""RemoveDropout: removes dropouts, which pass their input through in evaluation.

Before:  y = dropout(x, 0.5, train=False); z = f(y)
After:   z = f(x)
"""

from __future__ import annotations

from torch.fx import GraphModule

from openneutron.executorch.fx import arguments, operator_name

_DROPOUTS = frozenset({"aten.dropout.default", "aten.dropout_.default", "aten.feature_dropout.default"})


def remove_dropout(model: GraphModule) -> int:
    """Drop every dropout that is not in training mode."""
    count = 0
    for node in list(model.graph.nodes):
        if operator_name(node) in _DROPOUTS and not arguments(node)["train"]:
            node.replace_all_uses_with(node.args[0])
            model.graph.erase_node(node)
            count += 1
    return count
