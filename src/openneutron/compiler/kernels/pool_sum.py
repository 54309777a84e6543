"""`pool_sum`: running sums of whole rows, so that a global pool streams with its producer and its input is never stored.

No LiteRT operator maps to it; the pass `stream_pooling` makes it. Row y of the output is the sum of input rows 0 … y, all
held in one row of storage (the value is an accumulator).
"""

from __future__ import annotations

from dataclasses import dataclass

from openneutron.compiler.l1 import KernelGraph, Node, RowDemand, Value
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.microcode.table import ElementType


@dataclass(frozen=True)
class PoolSumParams:
    """Parameters of a `pool_sum` call."""

    kernel_w: int = param("pixels summed per row: the input's width", grows=2)


ABI = register(
    KernelAbi(
        id=9,
        name="pool_sum",
        abi=1,
        operands=("input", "output"),
        params=PoolSumParams,
        cost="lane",
        meaning="INT32 sums over rows 0 … y of each channel, kept in one row; row 0 starts from zero",
    )
)


def pool_sum(graph: KernelGraph, source: int) -> tuple[Node, int]:
    """Return the node that sums all pixels of `source`, and its accumulator value."""
    _, height, width, channels = graph.values[source].shape
    name = f"{graph.values[source].name} (sums)"
    total = graph.add_value(Value(name, (1, height, 1, channels), ElementType.INT32, accumulator=True))
    return Node(ABI.name, [source, total], total, PoolSumParams(width), demand={0: RowDemand()}, downward=True), total
