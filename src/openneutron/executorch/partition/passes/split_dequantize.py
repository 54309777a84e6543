"""SplitDequantize: every reader of a stored value gets a dequantize of its own.

Before:  d = dequantize(q); y = f(d); z = g(d)
After:   d = dequantize(q); y = f(d); e = dequantize(q); z = g(e)

Readers that share one could only be delegated together.
"""

from __future__ import annotations

import copy

from torch.export import ExportedProgram
from torch.fx import GraphModule

from openneutron.executorch.fx import is_dequantize


def split_dequantize(program: ExportedProgram) -> ExportedProgram:
    """A program in which no dequantize has two readers; the given one, when that is so already."""
    if not any(is_dequantize(node) and len(node.users) > 1 for node in program.graph.nodes):
        return program
    graph = copy.deepcopy(program.graph)
    for node in list(graph.nodes):
        if not is_dequantize(node):
            continue
        for user in list(node.users)[1:]:
            with graph.inserting_after(node):
                twin = graph.call_function(node.target, node.args, node.kwargs)
            twin.meta = dict(node.meta)
            user.replace_input_with(node, twin)
    return program._update(GraphModule(program.graph_module, graph), program.graph_signature)
