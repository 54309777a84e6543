"""Profiles: what every kernel of compiled microcode costs, from a simulated run, as a report.

Example:
    >>> report = profile([code], source="model.pte")
    >>> max(report.kernels, key=lambda kernel: kernel.cycles).name
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from openneutron.analyze.snapshot import Run
from openneutron.board.answer import open_unexercised
from openneutron.board.interval import interval
from openneutron.compiler.l1 import ITEM_BYTES
from openneutron.errors import UnsupportedError
from openneutron.machine import targets
from openneutron.machine.simulator import DTYPES, Simulator
from openneutron.microcode import abi
from openneutron.microcode.instructions import Call, Dma, Operand, Program
from openneutron.microcode.table import Region
from openneutron.microcode.walk import output_of, steps
from openneutron.report.model import Event, Kernel, Report, Totals
from openneutron.report.totals import merge_totals

_UNIT = 10  # costs are in 1/2^10 cycle
# Each is kept with its times; the largest models of the zoo make tens of thousands.
MOST_EVENTS = 1 << 20
ARRAY_MACS = (
    "MACs here are the array's, which multiplies the zeros of padding and of merged pixels too; "
    "profile the source, or keep the debug bundle, to see the layers' own"
)


@dataclass(frozen=True)
class Code:
    """One microcode block, decoded, with its bytes; `layers` are its kernels as the compiler knew them, when known."""

    where: str
    blocks: tuple[bytes, bytes, bytes]
    program: Program
    layers: tuple[Kernel, ...] = ()


def profile(codes: Sequence[Code], *, source: str) -> Report:
    """Run each block once on zeros (cycles do not depend on data) and sum up its calls by kernel.

    MACs are the layer's where `layers` are known; otherwise those of the array, which multiplies the zeros of padding and
    of merged pixels too.
    """
    kernels: list[Kernel] = []
    events: list[Event] = []
    totals: list[Totals] = []
    for code in codes:
        if (executed := code.program.step_count) > MOST_EVENTS:
            raise UnsupportedError(
                f"one run makes {executed:,} calls and copies, at most {MOST_EVENTS:,} are profiled", where=code.where,
                hint="`openneutron inspect` and `disasm` show its loops",
            )  # fmt: skip
    for graph, code in enumerate(codes):
        run, sums = _run(code)
        kernels += _kernels(graph, code, run)
        events += _events(graph, code, run)
        totals.append(sums)
    target = codes[0].program.target if codes else ""
    total = replace(merge_totals(totals), macs=sum(kernel.macs for kernel in kernels), neutron_graphs=len(codes))
    if codes:
        low, high = interval(total.milliseconds, unexercised=open_unexercised(targets.load(target), tuple(kernels)))
        total = replace(total, milliseconds_low=low, milliseconds_high=high)
    notes = () if all(code.layers for code in codes) else (ARRAY_MACS,)
    return Report(target, "open", "", source, total, kernels=tuple(kernels), events=tuple(events), notes=notes)


def _run(code: Code) -> tuple[Run, Totals]:
    with Simulator(*code.blocks, where=code.where) as simulator:
        zeros = [np.zeros(tensor.shape, DTYPES[tensor.dtype]) for tensor in simulator.inputs]
        outputs, events = simulator.run_with_events(zeros)
        info, cycles = simulator.info, simulator.cycles
        program = code.program
        io = sum(row.bytes for row in program.tensors) + program.state_bytes
    totals = Totals(
        cycles=cycles,
        milliseconds=targets.load(info.target).milliseconds(cycles),
        peak_bytes=io + info.scratch_bytes + info.prefetch_bytes + program.tcm_bytes,
        io_bytes=io,
        scratch_bytes=info.scratch_bytes,
        prefetch_bytes=info.prefetch_bytes,
        tcm_bytes=program.tcm_bytes,
        weight_bytes=len(code.blocks[1]),
        microcode_bytes=len(code.blocks[0]),
    )
    return Run(outputs, events), totals


def _kernels(graph: int, code: Code, run: Run) -> list[Kernel]:
    calls: dict[int, Call] = {}
    for step, _, _ in steps(code.program):
        if isinstance(step, Call):
            calls.setdefault(step.tag, step)
    known = {layer.node: layer for layer in code.layers}
    found: list[Kernel] = []
    for tag, call in calls.items():
        mine = [event for event in run.events if event.kernel and event.tag == tag]
        kernel = Kernel(
            node=tag,
            graph=graph,
            kernel=abi.by_id(call.kernel).name,
            name=f"node {tag}",
            operators=(),
            output_shape=_shape(output_of(call)),
            macs=sum(event.macs for event in mine),
            calls=len(mine),
            cycles=sum(event.end - event.start for event in mine),
            compute_cycles=sum(event.cost.compute for event in mine) >> _UNIT,
            memory_cycles=sum(event.cost.memory for event in mine) >> _UNIT,
            overhead_cycles=sum(event.cost.overhead for event in mine) >> _UNIT,
            weight_bytes=_bytes(call, constant=True),
            activation_bytes=_bytes(call, constant=False),
        )
        layer = known.get(tag)
        if layer is not None and layer.kernel == kernel.kernel:
            # What the schedule does is measured; what the layer is, the compiler knows better than its microcode.
            kernel = replace(
                kernel, name=layer.name, operators=layer.operators, output_shape=layer.output_shape, macs=layer.macs,
                notes=layer.notes, segment=layer.segment, tensor=layer.tensor, module=layer.module,
            )  # fmt: skip
        found.append(kernel)
    return found


def _events(graph: int, code: Code, run: Run) -> list[Event]:
    """The run's events; copies get their bytes from the microcode."""
    found: list[Event] = []
    for (step, first, _), event in zip(steps(code.program), run.events, strict=True):
        if isinstance(step, Dma):
            found.append(Event(graph, step.channel, "dma", "copy", 0, step.bytes, event.start, event.end))
        else:
            found.append(Event(graph, event.tag, "array", event.kernel, first, event.rows, event.start, event.end))
    return found


def _shape(operand: Operand) -> tuple[int, ...]:
    return operand.batch, operand.height, operand.width, operand.channels


def _bytes(call: Call, *, constant: bool) -> int:
    """Bytes of the operands that are constants, or that are not; an absent operand has none."""
    total = 0
    for role, operand in zip(abi.by_id(call.kernel).operands, call.operands, strict=True):
        named = role.removesuffix("?") in abi.CONSTANT_ROLES or operand.region is Region.WEIGHTS
        if named == constant and role.removesuffix("?") != "workspace":
            total += math.prod(_shape(operand)) * ITEM_BYTES[operand.dtype]
    return total
