"""SeparateConstants: gives each operator that shares parameters with its inputs a constant of its own.

Before:  y = maximum(a, c); z = maximum(b, c)           a and b have one scale, because both have that of c
After:   y = maximum(a, c); z = maximum(b, c')

Exporters store equal constants once. A network of twenty layers that are all clamped by one constant would have one scale.
"""

from __future__ import annotations

from typing import Final

from torch.fx import GraphModule

from openneutron.executorch.fx import operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import tensor_of
from openneutron.executorch.quantize.passes._insert import ROLE_KEY

_SHARING: Final = frozenset({
    "aten.maximum.default", "aten.minimum.default", "aten.cat.default", "aten.concat.default", "aten.stack.default",
})  # fmt: skip
_MOST: Final = 1 << 12  # elements: a copy of a larger one takes more flash than its own scale is worth


def separate_constants(model: GraphModule) -> int:
    """Edit the graph in place; returns the number of readers that got a node of their own.

    Steps of a recurrent layer keep sharing, as their values have equal scales on purpose.
    """
    count = 0
    for node in list(model.graph.nodes):
        if len(node.users) < 2 or tensor_of(model, node) is None or value_of(node).numel() > _MOST:
            continue
        readers = [one for one in node.users if operator_name(one) in _SHARING and ROLE_KEY not in one.meta]
        for reader in readers if len(readers) < len(node.users) else readers[1:]:
            with model.graph.inserting_after(node):
                own = model.graph.get_attr(str(node.target))
            own.meta = dict(node.meta)
            reader.replace_input_with(node, own)
            count += 1
    return count
