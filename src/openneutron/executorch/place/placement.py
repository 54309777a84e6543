"""Placement: whether a partition is worth the trip to the NPU.

With "all" whatever can be delegated is. With "fastest" a partition that the machine model, the call and the copies at
its border make slower than the CPU's own kernels stays on the CPU, and the report says by how much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch.fx import Node

from openneutron.board.cpu import CORTEX_M, CpuCosts, delegate_call, on_core
from openneutron.errors import OptionError
from openneutron.executorch.compile_spec import conversion_options
from openneutron.executorch.deliver.conversion import as_one_graph, converted
from openneutron.executorch.fx import is_dequantize, is_quantize, value_of
from openneutron.executorch.lower.lowering import Lowered
from openneutron.executorch.place.border import copy_cycles, turned_bytes
from openneutron.executorch.place.cpu_model import cpu_class, cpu_clock, cpu_cycles
from openneutron.litert.write import write_model
from openneutron.machine import targets
from openneutron.options import PLACEMENTS, Options


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


def check_placement(placement: str, options: Options, *, where: str) -> None:
    """Refuse a placement that does not exist, and "fastest" where there is no model to compare with."""
    if placement not in PLACEMENTS:
        raise OptionError(f"placement is {placement!r}", where=where, hint=f"one of {', '.join(PLACEMENTS)}")
    if placement == "fastest":
        cpu_clock(options.target)
        if options.converter != "open":
            raise OptionError(
                f"placement is 'fastest', but the {options.converter} converter predicts no cycles", where=where,
                hint='use placement="all"',
            )  # fmt: skip


def weigh(nodes: Sequence[Node], lowered: Lowered, options: Options, costs: CpuCosts) -> Trip:
    """Compile the partition and compare it with its `nodes` on the CPU, whose kernels cost `costs`.

    Example:
        >>> weigh(nodes, lowered, options, CORTEX_M).worth
        False
    """
    chip, clock = targets.load(options.target), cpu_clock(options.target)
    own = on_core(costs, chip)
    conversion = as_one_graph(conversion_options(options, "placement"))
    report = converted(write_model(lowered.model), conversion).report
    npu = report.totals.cycles / chip.clock_hz
    border = [*zip(lowered.inputs, lowered.input_formats, strict=True)]
    border += zip(lowered.outputs, lowered.output_formats, strict=True)
    turned = turned_bytes((value_of(node), last) for node, last in border)
    # Cortex-M operators read and write stored values; portable kernels need every quantize and dequantize around them.
    nodes = [node for node in nodes if costs is not CORTEX_M or not (is_quantize(node) or is_dequantize(node))]
    cpu: float = sum(cpu_cycles(node, own) for node in nodes)
    if costs is CORTEX_M and any(_is_spatial(node) for node in nodes):
        # These run in NHWC too, between transposes of their own.
        cpu += sum(own.call + copy_cycles(size, chip) for size in turned)
    copies = copy_cycles(sum(turned), chip)
    return Trip(npu * 1e6, delegate_call(chip) / clock * 1e6, copies / clock * 1e6, cpu / clock * 1e6)


def _is_spatial(node: Node) -> bool:
    return cpu_class(node) in ("conv", "pool")
