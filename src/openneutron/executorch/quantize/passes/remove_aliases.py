"""RemoveAliases: removes aliases, which exporting makes of `x.float()` and of a slice of everything.

Before:  y = alias(x); z = f(y)
After:   z = f(x)
"""

from __future__ import annotations

from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, value_of


def remove_aliases(model: GraphModule) -> int:
    """Drop every alias that is not itself a result: each would be a layer with its own scale.

    Assertions that exporting puts in front of `x.float()` are dropped too: shapes and types are fixed from here on.
    """
    count = 0
    for node in list(model.graph.nodes):
        if operator_name(node) == "aten._assert_tensor_metadata.default":
            model.graph.erase_node(node)
            count += 1
        elif _is_alias(node) and all(user.op != "output" for user in node.users):
            node.replace_all_uses_with(node.args[0])
            model.graph.erase_node(node)
            count += 1
    return count


def _is_alias(node: Node) -> bool:
    if operator_name(node) != "aten.to.dtype":
        return operator_name(node) == "aten.alias.default"
    given = arguments(node)
    return not given["copy"] and value_of(given["self"]).dtype == given["dtype"] and given["memory_format"] is None
