"""Fuse padding with zero points into the convolutions that read it: they skip taps outside the image anyway.

Before:  p = pad(x, 1 row above, 1 column left, …); y = conv2d(p, pad_top=0)
After:   y = conv2d(x, pad_top=1, pad_left=1)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from openneutron.compiler.l1 import KernelGraph, Node, RowDemand
from openneutron.machine.targets import Target

if TYPE_CHECKING:
    from openneutron.compiler.kernels.pad import PadParams

_CONVOLUTIONS = ("conv2d", "depthwise_conv2d", "conv2d16", "depthwise_conv2d16")


def _fits(graph: KernelGraph, pad: Node, reader: Node) -> bool:
    """Does this reader treat what lies outside its image exactly as the frame that `pad` makes?"""
    p: PadParams = pad.params
    source = pad.operands[0]
    if not isinstance(source, int) or reader.kernel not in _CONVOLUTIONS or reader.operands[0] != pad.output:
        return False
    before, after = graph.values[source], graph.values[pad.output]
    images_only = p.before_batch == 0 and p.before_channels == 0
    same_depth = (before.shape[0], before.shape[3]) == (after.shape[0], after.shape[3])
    return (
        images_only and same_depth and p.value == getattr(reader.params, "input_zero", 0) and reader.demand is not None
    )


def fuse_pad(graph: KernelGraph, target: Target) -> int:
    """Move each frame whose readers are all convolutions into their own padding."""
    consumers = graph.consumers()
    aliased = {value.alias.root for value in graph.values if value.alias is not None}
    outputs = set(graph.outputs)
    removed: set[int] = set()
    for at, pad in enumerate(graph.nodes):
        if pad.kernel != "pad" or pad.output in outputs or pad.output in aliased:
            continue
        readers = [graph.nodes[n] for n in consumers.get(pad.output, [])]
        if not readers or not all(_fits(graph, pad, reader) for reader in readers):
            continue
        p = pad.params
        for reader in readers:
            assert reader.demand is not None
            old = reader.demand[0]
            reader.operands[0] = pad.operands[0]
            reader.params = replace(
                reader.params,
                pad_top=reader.params.pad_top + p.before_height,
                pad_left=reader.params.pad_left + p.before_width,
            )
            reader.demand = {**reader.demand, 0: RowDemand(old.stride, 1, old.before + p.before_height, old.extent)}
            reader.sources = (*pad.sources, *reader.sources)
            reader.notes = (*reader.notes, "padding fused")
        removed.add(at)
    graph.nodes = [node for at, node in enumerate(graph.nodes) if at not in removed]
    return len(removed)
