"""Borders between partitions: a tensor that only NeutronGraphs touch stays in their order of dimensions.

Before:  graph 0 makes y channels-last; the delegate transposes it to contiguous, and back for graph 1
After:   the program stores y channels-last; no transpose is needed
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.fx import Node

from openneutron.executorch.fx import value_of
from openneutron.executorch.lower.lowering import Lowered
from openneutron.executorch.lower.values import CHANNELS_LAST

_IMAGE_RANK = 4  # the only rank for which PyTorch knows channels-last


def keep_order_between(partitions: Sequence[Lowered]) -> int:
    """Mark stored values as channels-last where the graph that makes them and all that read them want it so.

    Example:
        >>> keep_order_between([first, second])
        1
    """
    made = _wishes(partition_ends=[(p.outputs, p.output_formats) for p in partitions])
    read = _wishes(partition_ends=[(p.inputs, p.input_formats) for p in partitions])
    inside = {id(node) for p in partitions for one in p.inputs for node in one.users}
    turned = 0
    for node, last in made.items():
        value = value_of(node)
        only_graphs = node in read and all(id(user) in inside for user in node.users)
        if not (last and only_graphs and read[node]) or getattr(value, "dim", lambda: 0)() != _IMAGE_RANK:
            continue
        node.meta["val"] = value.contiguous(memory_format=torch.channels_last)
        turned += 1
    return turned


def _wishes(partition_ends: Sequence[tuple[Sequence[Node], Sequence[int]]]) -> dict[Node, bool]:
    """Node → whether every partition that makes or reads it there has it channels-last."""
    found: dict[Node, bool] = {}
    for nodes, formats in partition_ends:
        for node, kind in zip(nodes, formats, strict=True):
            found[node] = found.get(node, True) and kind == CHANNELS_LAST
    return found
