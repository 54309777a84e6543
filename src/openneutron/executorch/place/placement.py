"""Placement: whether a partition is faster on the NPU than on the CPU.

With "all" everything that can be delegated is delegated. With "fastest" a partition stays on the CPU if its estimated time
on the NPU, with the call and the copies at its border, is longer than that of the CPU's kernels. The report says by how much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch.fx import Node

from openneutron.board.cpu import CORTEX_M, CpuCosts, delegate_call, on_core
from openneutron.errors import OptionError
from openneutron.executorch.fx import is_dequantize, is_quantize, value_of
from openneutron.executorch.lower.lowering import Lowered
from openneutron.executorch.place.border import copy_cycles, transposed_bytes
from openneutron.executorch.place.cpu_model import cpu_class, cpu_clock, cpu_cycles
from openneutron.machine import targets
from openneutron.options import PLACEMENTS, Options


@dataclass(frozen=True)
class PlacementCosts:
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


def compare_with_cpu(
    nodes: Sequence[Node], lowered: Lowered, cycles: float, target: str, costs: CpuCosts
) -> PlacementCosts:
    """Compare a partition that takes `cycles` of the NPU with its `nodes` on the CPU, whose kernels cost `costs`.

    Example:
        >>> compare_with_cpu(nodes, lowered, result.report.totals.cycles, "imxrt700", CORTEX_M).worth
        False
    """
    chip, clock = targets.load(target), cpu_clock(target)
    own = on_core(costs, chip)
    npu = cycles / chip.clock_hz
    border = [*zip(lowered.inputs, lowered.input_formats, strict=True)]
    border += zip(lowered.outputs, lowered.output_formats, strict=True)
    turned = transposed_bytes((value_of(node), last) for node, last in border)
    # Cortex-M operators read and write stored values; portable kernels need every quantize and dequantize around them.
    nodes = [node for node in nodes if costs is not CORTEX_M or not (is_quantize(node) or is_dequantize(node))]
    cpu: float = sum(cpu_cycles(node, own) for node in nodes)
    if costs is CORTEX_M and any(_is_spatial(node) for node in nodes):
        # These run in NHWC too, between transposes of their own.
        cpu += sum(own.call + copy_cycles(size, chip) for size in turned)
    copies = copy_cycles(sum(turned), chip)
    return PlacementCosts(npu * 1e6, delegate_call(chip) / clock * 1e6, copies / clock * 1e6, cpu / clock * 1e6)


def _is_spatial(node: Node) -> bool:
    return cpu_class(node) in ("conv", "pool")
