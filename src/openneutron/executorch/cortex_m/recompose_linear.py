"""RecomposeLinear: recomposes a linear layer that Edge decomposed; Cortex-M's passes need it whole.

Before:  t = permute_copy(w, [1, 0]); y = addmm(b, x, t)
After:   y = linear(x, w, b)
"""

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from openneutron.executorch.fx import is_dequantize, operator_name
from openneutron.executorch.upstream.edge_names import edge_operator


def recompose_linear(program: ExportedProgram) -> int:
    """Edit in place; returns the number of recomposed layers."""
    count = 0
    for node in list(program.graph.nodes):
        name = operator_name(node)
        if name not in ("aten.addmm.default", "aten.mm.default") or node.kwargs:
            continue
        bias, x, turned = node.args if name == "aten.addmm.default" else (None, *node.args)
        weight = _transposed_matrix(turned)
        if weight is None:
            continue
        with program.graph.inserting_before(node):
            made = program.graph.call_function(edge_operator(torch.ops.aten.linear.default), (x, weight, bias))
        made.meta = dict(node.meta)
        node.replace_all_uses_with(made)
        # The report uses this node's name.
        old = node.name
        program.graph.erase_node(node)
        made.name = old
        if not turned.users:
            program.graph.erase_node(turned)
        count += 1
    return count


def _transposed_matrix(node: object) -> Node | None:
    """Return the dequantized matrix before its transposition, None for anything else."""
    if not isinstance(node, Node) or operator_name(node) != "aten.permute_copy.default" or list(node.args[1]) != [1, 0]:
        return None
    source = node.args[0]
    return source if isinstance(source, Node) and is_dequantize(source) else None
