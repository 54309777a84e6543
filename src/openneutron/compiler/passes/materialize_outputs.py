"""Give every graph output storage of its own: outputs that are views of inputs, constants or other outputs are copied.

Before:  y = view(x); return x2, y            (x is an input, or the storage of another output)
After:   y' = copy(y); return x2, y'
"""

from __future__ import annotations

from openneutron.compiler.kernels.copy import copy_node
from openneutron.compiler.l1 import KernelGraph, Value
from openneutron.machine.targets import Target


def materialize_outputs(graph: KernelGraph, target: Target) -> int:
    """Insert copies where an output cannot simply be the storage its node writes."""
    taken = set(graph.inputs)
    copies = 0
    for k, index in enumerate(graph.outputs):
        value = graph.values[index]
        root = graph.root(index)
        owner = graph.values[root]
        whole = value.alias is None or (value.alias.offset == 0 and value.bytes == owner.bytes)
        if root in taken or owner.data is not None or not whole:
            made = graph.add_value(
                Value(f"{value.name} (output)", value.shape, value.dtype, value.scale, value.zero_point, value.tensor)
            )
            graph.nodes.append(copy_node(graph, index, made))
            graph.outputs[k] = made
            root = made
            copies += 1
        taken.add(root)
    return copies
