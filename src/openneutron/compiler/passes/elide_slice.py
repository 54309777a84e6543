"""Let readers read a part of a tensor in place instead of a copy of it.

Before:  a = slice(x, channels 8 to 16); y = conv2d(a)
After:   y = conv2d(channels 8 to 16 of x)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.compiler.kernels import abi_of
from openneutron.compiler.l1 import ITEM_BYTES, Alias, KernelGraph
from openneutron.machine.targets import Target

if TYPE_CHECKING:
    from openneutron.compiler.kernels.slice import SliceParams


def _strides(graph: KernelGraph, value: int) -> Alias:
    """Return a value's place as an alias, also for densely stored values."""
    v = graph.values[value]
    if v.alias is not None:
        return v.alias
    _, h, w, c = v.shape
    pixel = c * ITEM_BYTES[v.dtype]
    return Alias(value, 0, h * w * pixel, w * pixel, pixel)


def elide_slice(graph: KernelGraph, target: Target) -> int:
    """Turn each `slice` with steps of 1 whose readers all accept pitches into an alias."""
    consumers = graph.consumers()
    roots = {value.alias.root for value in graph.values if value.alias is not None}
    outputs = set(graph.outputs)
    removed: set[int] = set()
    for at, node in enumerate(graph.nodes):
        source, made = node.operands[0], graph.values[node.output]
        if node.kernel != "slice" or not isinstance(source, int) or made.alias is not None:
            continue
        params: SliceParams = node.params
        readers = consumers.get(node.output, [])
        if params.step != (1, 1, 1, 1) or node.output in outputs or node.output in roots or not readers:
            continue
        if graph.values[source].data is not None or any(abi_of(graph.nodes[n].kernel).dense for n in readers):
            continue
        place = _strides(graph, source)
        n, y, x, c = params.first
        offset = place.offset + n * place.plane + y * place.pitch + x * place.pixel + c * ITEM_BYTES[made.dtype]
        made.alias = Alias(place.root, offset, place.plane, place.pitch, place.pixel)
        roots.add(place.root)
        removed.add(at)
    graph.nodes = [node for at, node in enumerate(graph.nodes) if at not in removed]
    return len(removed)
