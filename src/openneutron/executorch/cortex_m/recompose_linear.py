"""RecomposeLinear: Edge splits a linear layer that the NPU did not take; Cortex-M's passes want it whole.

Before:  t = permute_copy(w, [1, 0]); y = addmm(b, x, t)
After:   y = linear(x, w, b)
"""

from __future__ import annotations

from torch.export import ExportedProgram
from torch.fx import Node

from openneutron.executorch.fx import is_dequantize, operator_name


def recompose_linear(program: ExportedProgram) -> int:
    """Edit in place; returns how many layers are whole again."""
    from executorch.exir.dialects._ops import ops

    count = 0
    for node in list(program.graph.nodes):
        name = operator_name(node)
        if name not in ("aten.addmm.default", "aten.mm.default") or node.kwargs:
            continue
        bias, x, turned = node.args if name == "aten.addmm.default" else (None, *node.args)
        weight = _turned(turned)
        if weight is None:
            continue
        with program.graph.inserting_before(node):
            made = program.graph.call_function(ops.edge.aten.linear.default, (x, weight, bias))
        made.meta = dict(node.meta)
        node.replace_all_uses_with(made)
        # The report knows the node by this name.
        old = node.name
        program.graph.erase_node(node)
        made.name = old
        if not turned.users:
            program.graph.erase_node(turned)
        count += 1
    return count


def _turned(node: object) -> Node | None:
    """The dequantized matrix behind its transposition, None for anything else."""
    if not isinstance(node, Node) or operator_name(node) != "aten.permute_copy.default" or list(node.args[1]) != [1, 0]:
        return None
    source = node.args[0]
    return source if isinstance(source, Node) and is_dequantize(source) else None
