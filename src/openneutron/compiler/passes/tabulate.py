"""Replace a rescaling by a table where the kernel in front of it can apply one: this saves a pass over memory.

Before:  a = conv2d(x); b = requantize(a)         (nobody else reads a)
After:   a = conv2d(x); b = lut(a, table)         (which fuse_lut moves into the convolution)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.compiler.l1 import KernelGraph, Node
from openneutron.compiler.passes.fuse_lut import takes_table
from openneutron.machine.targets import Target
from openneutron.microcode.table import ElementType, Rounding

if TYPE_CHECKING:
    from openneutron.compiler.kernels.requantize import RequantizeParams

_FUSES = ("lut", "requantize")


def tabulate(graph: KernelGraph, target: Target) -> int:
    """Turn an 8-bit `requantize` into a lookup table where the kernel before it can apply one and has no other reader."""
    producers, consumers = graph.producers(), graph.consumers()
    count = 0
    for at, node in enumerate(graph.nodes):
        source = node.operands[0]
        if node.kernel != "requantize" or not isinstance(source, int) or source not in producers:
            continue
        made = graph.nodes[producers[source]]
        alone = consumers.get(source) == [at] and source not in graph.outputs
        same_type = graph.values[source].dtype is graph.values[node.output].dtype is not ElementType.INT16
        if not alone or not same_type or not (takes_table(made) or made.kernel in _FUSES):
            continue
        _become_table(node, source, signed=graph.values[source].dtype is ElementType.INT8)
        count += 1
    return count


def _become_table(node: Node, source: int, *, signed: bool) -> None:
    # Tables are imported where one is made: most models have no rescaling that could become one.
    from openneutron.compiler.kernels.lut import ABI, LutParams
    from openneutron.compiler.numbers.tables import requantize_table
    from openneutron.litert.table_composite import ENTRIES

    p: RequantizeParams = node.params
    clamp = (p.clamp_low, p.clamp_high)
    table = requantize_table(p.input_zero, p.multiplier, p.shift, p.output_zero, clamp, signed=signed)
    node.kernel, node.params, node.rounding = ABI.name, LutParams(ENTRIES), Rounding.NONE
    node.operands = [source, table, node.output]
