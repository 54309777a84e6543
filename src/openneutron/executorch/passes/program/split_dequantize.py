"""SplitDequantize: every reader of a stored value gets a dequantize of its own.

Before:  d = dequantize(q); y = f(d); z = g(d)
After:   d = dequantize(q); y = f(d); e = dequantize(q); z = g(e)

Readers that share one could only be delegated together.
"""

from __future__ import annotations

from torch.fx import GraphModule

from openneutron.executorch.fx import is_dequantize


def split_dequantize(model: GraphModule) -> int:
    """Edit the graph in place; returns how many dequantizes were added."""
    count = 0
    for node in list(model.graph.nodes):
        if not is_dequantize(node):
            continue
        for user in list(node.users)[1:]:
            with model.graph.inserting_after(node):
                twin = model.graph.call_function(node.target, node.args, node.kwargs)
            twin.meta = dict(node.meta)
            user.replace_input_with(node, twin)
            count += 1
    if count:
        model.recompile()
    return count
