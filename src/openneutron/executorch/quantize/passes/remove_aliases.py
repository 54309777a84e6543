"""RemoveAliases: another name for a value, which exporting makes of a slice of everything.

Before:  y = alias(x); z = f(y)
After:   z = f(x)
"""

from __future__ import annotations

from torch.fx import GraphModule

from openneutron.executorch.fx import operator_name


def remove_aliases(model: GraphModule) -> int:
    """Drop every alias that is not itself a result: each would be a layer of its own, with its own scale."""
    count = 0
    for node in list(model.graph.nodes):
        if operator_name(node) == "aten.alias.default" and all(user.op != "output" for user in node.users):
            node.replace_all_uses_with(node.args[0])
            model.graph.erase_node(node)
            count += 1
    return count
