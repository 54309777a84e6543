"""SettleOrders: marks contiguous tensors as contiguous, also after Cortex-M operators.

Before:  p = cortex_m.pad(x), x of one channel: marked channels-last; y = sin(p), which the stock kernel refuses
After:   p = cortex_m.pad(x); c = _clone_dim_order(p, [0, 1, 2, 3]); y = sin(c)

With one channel or one pixel both orders are the same bytes. Cortex-M's padding then treats input and result as channels-last,
while other operators treat them as contiguous.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from openneutron.executorch.fx import operator_name, value_of
from openneutron.executorch.partition.passes.make_islands_contiguous import propagate
from openneutron.executorch.upstream.edge_names import edge_operator

CONTIGUOUS = [0, 1, 2, 3]


def settle_orders(program: ExportedProgram) -> int:
    """Edit the program in place; returns the number of inserted copies."""
    from executorch.exir.delegate import executorch_call_delegate

    changed: set[Node] = set()
    count = 0
    for node in list(program.graph.nodes):
        if node.op != "call_function" or node.target is executorch_call_delegate:
            continue
        if any(source in changed for source in node.all_input_nodes):
            propagate(node)
            changed.add(node)
        # The program's outputs may have any order, and their names are part of its signature.
        readers = [user for user in node.users if user.op != "output"]
        if operator_name(node).startswith("cortex_m.") and readers and _is_misnamed(value_of(node)):
            with program.graph.inserting_after(node):
                made = program.graph.call_function(
                    edge_operator(torch.ops.dim_order_ops._clone_dim_order.default), (node,), {"dim_order": CONTIGUOUS}
                )
            made.meta = {**node.meta, "val": value_of(node).clone(memory_format=torch.contiguous_format)}
            for reader in readers:
                reader.replace_input_with(node, made)
            changed.add(made)
            count += 1
    if count:
        program.graph_module.recompile()
    return count


def _is_misnamed(value: Any) -> bool:
    """Return whether an image is contiguous in memory but has another order by its strides."""
    if not isinstance(value, torch.Tensor) or value.dim() != 4 or not value.is_contiguous():
        return False
    return list(value.dim_order()) != CONTIGUOUS
