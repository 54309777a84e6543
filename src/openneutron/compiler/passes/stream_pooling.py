"""Make global pools streamable: add up each channel while rows arrive, and round once at the end.

Before:  y = avg_pool2d(x) over the whole image, or reduce(x) as the mean over height and width
After:   s = pool_sum(x) (one row of INT32); y = pool_mean(s)

Exact: the sums are the same integers, rounded by the same formula. Each row costs a call's set-up, so only the largest value of
a graph is treated, which decides its memory, and others where memory is short.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.compiler.kernels.pool_mean import PoolMeanParams, pool_mean
from openneutron.compiler.kernels.pool_sum import pool_sum
from openneutron.compiler.l1 import ITEM_BYTES, KernelGraph, Node
from openneutron.machine.targets import Target

if TYPE_CHECKING:
    from openneutron.compiler.kernels.avg_pool2d import AvgPool2dParams
    from openneutron.compiler.kernels.reduce import ReduceParams

# Below this many input bytes the second call costs more than the input's memory is worth.
MINIMUM_BYTES = 1024
_HEIGHT_AND_WIDTH = 2 | 4  # `reduce`'s bits for the axes of an image
_SUM = 0  # `reduce`'s mode
_MAX_PIXELS = {1: (1 << 31) // 256 - 1, 2: (1 << 31) // 65536 - 1}  # by bytes per element: sums stay in INT32


def _params(graph: KernelGraph, node: Node) -> PoolMeanParams | None:
    """Return the rounding parameters of an `avg_pool2d` or `reduce` over a whole image; None for other windows and axes."""
    source, output = node.operands[0], graph.values[node.output]
    assert isinstance(source, int)
    n, h, w, _ = graph.values[source].shape
    if n != 1 or output.shape[1:3] != (1, 1) or h * w > _MAX_PIXELS[ITEM_BYTES[output.dtype]]:
        return None
    if node.kernel == "avg_pool2d":
        pool: AvgPool2dParams = node.params
        whole = (pool.kernel_h, pool.kernel_w, pool.pad_top, pool.pad_left) == (h, w, 0, 0)
        return PoolMeanParams(h * w, 0, 0, 0, 0, pool.clamp_low, pool.clamp_high) if whole else None
    p: ReduceParams = node.params
    by_steps = node.operands[1] is not None
    if (p.axes, p.mode) == (_HEIGHT_AND_WIDTH, _SUM) and not by_steps:
        return PoolMeanParams(h * w, p.offset, p.multiplier, p.shift, p.output_zero, p.clamp_low, p.clamp_high)
    return None


def stream_pooling(graph: KernelGraph, target: Target, *, everywhere: bool = False) -> int:
    """Replace each global pool of a value worth streaming; `everywhere`: of every value."""
    nodes: list[Node] = []
    acted = 0
    made = {node.output for node in graph.nodes}
    sizes = sorted((graph.values[value].bytes for value in made), reverse=True)[:2]
    minimum = MINIMUM_BYTES if everywhere else max(MINIMUM_BYTES, sizes[1] + 1 if len(sizes) > 1 else 0)
    for node in graph.nodes:
        source = node.operands[0]
        params = _params(graph, node) if isinstance(source, int) and node.kernel in ("avg_pool2d", "reduce") else None
        if params is None or not isinstance(source, int) or graph.values[source].bytes < minimum:
            nodes.append(node)
            continue
        first, sums = pool_sum(graph, source)
        second = pool_mean(sums, graph.values[source].shape[1], node.output, params, node.rounding)
        second.operands[1] = node.operands[1] if node.kernel == "avg_pool2d" else None
        first.sources = second.sources = node.sources
        second.notes = (*node.notes, "streamed")
        nodes += [first, second]
        acted += 1
    graph.nodes = nodes
    return acted
