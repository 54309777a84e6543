"""Merge a copy of a copy into one copy, or into a view when the two cancel, as transposes do.

Before:  a = copy(x, NHWC to NCHW); b = copy(a, NCHW to NHWC); y = conv2d(b)
After:   y = conv2d(x)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from openneutron.compiler.kernels.copy import RANK, CopyParams, copy_params
from openneutron.compiler.l1 import Alias, KernelGraph, Node
from openneutron.compiler.numbers.strides import Loop, compose_loops, is_plain, merge_loops
from openneutron.machine.targets import Target


def fuse_copies(graph: KernelGraph, target: Target) -> int:
    """Make copies of copies read the input of the first; one that changes nothing becomes a view. Views are dense here."""
    writers = {node.output: node for node in graph.nodes}
    removed: set[int] = set()
    count = 0
    for at, node in enumerate(graph.nodes):
        source = node.operands[0]
        if node.kernel != "copy" or not isinstance(source, int):
            continue
        first = writers.get(graph.root(source))
        if first is None or first.kernel != "copy" or not _whole(graph, first, source):
            continue
        loops = _both(first.params, node.params)
        origin = first.operands[0]
        if loops is None or not isinstance(origin, int):
            continue
        count += 1
        made = graph.values[node.output]
        if made.alias is None and is_plain(loops, prod(made.shape)):  # a part of a larger tensor has to be written
            _become_view(graph, node.output, graph.root(origin))
            removed.add(at)
        else:
            node.operands[0], node.params = origin, copy_params(loops)
            node.sources = (*first.sources, *node.sources)
    graph.nodes = [node for at, node in enumerate(graph.nodes) if at not in removed]
    return count


def _whole(graph: KernelGraph, first: Node, read: int) -> bool:
    """Does the first copy write all of its output, and `read` see all of it?"""
    written: int = prod(first.params.dims)
    whole, seen = graph.values[first.output], graph.values[read]
    return written == prod(whole.shape) == prod(seen.shape) and whole.dtype is seen.dtype


def _both(first: CopyParams, second: CopyParams) -> Sequence[Loop] | None:
    """Return the loops of one copy that replaces two, or None where it would need too many loops."""
    if any((first.input_offset, first.output_offset, second.input_offset, second.output_offset)):
        return None
    loops = compose_loops(_loops(first), _loops(second))
    if loops is None:
        return None
    joined = merge_loops(loops)
    return joined if len(joined) <= RANK else None


def _loops(params: CopyParams) -> list[Loop]:
    return [Loop(*one) for one in zip(params.dims, params.input_strides, params.output_strides, strict=True)]


def _become_view(graph: KernelGraph, value: int, root: int) -> None:
    """Store a value, and everything that was a view of it, as dense views of `root`."""
    for index, v in enumerate(graph.values):
        if index == value or (v.alias is not None and v.alias.root == value):
            _, h, w, _ = v.shape
            pixel = v.row_bytes // w
            v.alias = Alias(root, v.alias.offset if v.alias else 0, h * w * pixel, w * pixel, pixel)
