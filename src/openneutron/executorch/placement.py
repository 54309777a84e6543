"""Placement: whether a partition is worth the trip to the NPU.

With "all" whatever can be delegated is. With "fastest" a partition that the machine model, the call and the copies at
its border make slower than the CPU's own kernels stays on the CPU, and the report says by how much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from torch.fx import Node

from openneutron import targets
from openneutron.convert import convert
from openneutron.executorch.clusters import Cluster
from openneutron.executorch.compile_spec import NeutronOptions
from openneutron.executorch.cpu_model import CORTEX_M, DELEGATE_CALL, CpuCosts, cpu_clock, cpu_cycles
from openneutron.executorch.fx import shape_of
from openneutron.executorch.lower import Lowered
from openneutron.litert.write import write_model
from openneutron.verdict import Reason

PLACEMENTS: Final = ("all", "fastest")


@dataclass(frozen=True)
class Trip:
    """What a partition costs on either side, in microseconds."""

    npu: float
    call: float
    copies: float
    cpu: float

    @property
    def worth(self) -> bool:
        """Whether the NPU is at least as fast."""
        return self.npu + self.call + self.copies <= self.cpu

    @property
    def reason(self) -> str:
        """The sentence for a partition that stays."""
        there = self.npu + self.call + self.copies
        return (
            f"the CPU takes about {self.cpu:.0f} µs, the NPU {there:.0f} µs "
            f"({self.npu:.0f} computing, {self.call:.0f} for the call, {self.copies:.0f} for copies at the border)"
        )


def weigh(members: Sequence[Cluster], lowered: Lowered, options: NeutronOptions, costs: CpuCosts = CORTEX_M) -> Trip:
    """Compile the partition and compare it with its operators on the CPU.

    Example:
        >>> weigh(members, lowered, options).worth
        False
    """
    clock = cpu_clock(options.config)
    report = convert(write_model(lowered.model), options.conversion("placement")).report
    npu = report.totals.cycles / targets.load(options.config).clock_hz
    moved = sum(_elements(node) for node, last in zip(lowered.inputs, lowered.input_formats, strict=True) if last)
    moved += sum(_elements(node) for node, last in zip(lowered.outputs, lowered.output_formats, strict=True) if last)
    cpu = sum(cpu_cycles(node, costs) for cluster in members for node in cluster.cores)
    return Trip(npu * 1e6, DELEGATE_CALL / clock * 1e6, moved * costs.move / clock * 1e6, cpu / clock * 1e6)


def stay(cluster: Cluster, trip: Trip) -> None:
    """Leave a cluster on the CPU because it is faster there."""
    node = cluster.cores[0] if cluster.cores else cluster.nodes[0]
    cluster.refuse(node, Reason("slower_on_npu", trip.reason, node.name, 'placement="all" delegates it all the same'))


def _elements(node: Node) -> int:
    count = 1
    for size in shape_of(node):
        count *= size
    return count
