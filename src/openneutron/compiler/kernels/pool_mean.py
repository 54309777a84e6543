"""`pool_mean`: the end of a streamed global pool; turns the sums of `pool_sum` into output bytes.

No LiteRT operator maps to it; the pass `stream_pooling` makes it. With rounding mode DOUBLE it requantizes as MEAN does,
without one it divides as AVERAGE_POOL_2D does, halves away from zero.
"""

from __future__ import annotations

from dataclasses import dataclass

from openneutron.compiler.l1 import Node, RowDemand
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.microcode.table import Rounding


@dataclass(frozen=True)
class PoolMeanParams:
    """Parameters of a `pool_mean` call."""

    count: int = param("elements summed per channel", grows=2)
    offset: int = param("MEAN: added to the sum, minus zero point times count", least=4)
    multiplier: int = param("MEAN: fixed-point factor; without a rounding mode the sum is divided by count instead")
    shift: int = param("MEAN: its shift")
    output_zero: int = param("added after requantizing")
    clamp_low: int = param("smallest output")
    clamp_high: int = param("largest output")


ABI = register(
    KernelAbi(
        id=10,
        name="pool_mean",
        abi=1,
        operands=("input", "lut?", "output"),
        params=PoolMeanParams,
        cost="element",
        meaning="mean of sums in the last row of an accumulator",
    )
)


def pool_mean(sums: int, height: int, output: int, params: PoolMeanParams, rounding: Rounding) -> Node:
    """Return the node that reads the last row of the accumulator `sums`."""
    demand = {0: RowDemand(before=-(height - 1))}
    return Node(ABI.name, [sums, None, output], output, params, rounding, demand=demand)
