"""ReplacePadding: builds padding from the tensor's own values by slices or by selection.

Before:  y = pad(x, [1, 1], mode="circular")               y = pad(x, [2, 1], mode="replicate"), x of 3 columns
After:   y = cat([x[-1:], x, x[:1]], dim)                  y = index_select(x, dim, [0, 0, 0, 1, 2, 2])
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import add_constant
from openneutron.executorch.quantize.passes._insert import Insert

_PAD = "aten.pad.default"
_REPLICATIONS = frozenset(f"aten.replication_pad{rank}d.default" for rank in (1, 2, 3))


def replace_padding(model: GraphModule) -> int:
    """Rewrite in place; returns the number of rewritten paddings.

    Constant and reflected padding have operators of their own.
    """
    count = 0
    for node in list(model.graph.nodes):
        mode, pads = _frame(node)
        if mode not in ("circular", "replicate") or min(pads) < 0 or value_of(node).dtype != torch.float32:
            continue
        call, x = Insert(model, node), node.args[0]
        rank = value_of(x).dim()
        for position in range(0, len(pads), 2):
            dim, before, after = rank - 1 - position // 2, pads[position], pads[position + 1]
            if before or after:
                x = (_as_slices if mode == "circular" else _as_selection)(call, x, dim, before, after)
        node.replace_all_uses_with(x)
        model.graph.erase_node(node)
        count += 1
    return count


def _frame(node: Node) -> tuple[str, Sequence[int]]:
    """Return the padding mode and widths, last dimension first; "" for other nodes."""
    name = operator_name(node)
    if name in _REPLICATIONS:
        return "replicate", arguments(node)["padding"]
    if name != _PAD:
        return "", ()
    given = arguments(node)
    return given["mode"], given["pad"]


def _as_slices(call: Insert, x: Node, dim: int, before: int, after: int) -> Node:
    size = int(value_of(x).shape[dim])
    cut = torch.ops.aten.slice.Tensor
    parts = [call(cut, x, dim, size - before, size)] if before else []
    parts += [x, *([call(cut, x, dim, 0, after)] if after else [])]
    return call(torch.ops.aten.cat.default, parts, dim)


def _as_selection(call: Insert, x: Node, dim: int, before: int, after: int) -> Node:
    size = int(value_of(x).shape[dim])
    positions = torch.arange(-before, size + after).clamp(0, size - 1)
    with call.model.graph.inserting_before(call.node):
        picked = add_constant(call.model, "_picked", positions)
    picked.meta["val"] = value_of(x).new_empty(len(positions), dtype=torch.int64)
    return call(torch.ops.aten.index_select.default, x, dim, picked)
