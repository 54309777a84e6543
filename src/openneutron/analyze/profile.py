"""Profiles: the cost of every kernel of compiled microcode, from a simulated run, as a report.

Example:
    >>> report = profile([code], source="model.pte")
    >>> max(report.kernels, key=lambda kernel: kernel.cycles).name
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from openneutron.board.answer import open_unexercised
from openneutron.board.interval import interval
from openneutron.compiler.l1 import ITEM_BYTES
from openneutron.machine import simulator, targets
from openneutron.machine.pricing import Cost
from openneutron.machine.simulator import DTYPES, Simulator, Sums
from openneutron.microcode import abi
from openneutron.microcode.instructions import Call, Dma, Loop, Operand, Program
from openneutron.microcode.table import Region
from openneutron.microcode.walk import output_of, steps
from openneutron.report.model import Event, Kernel, Report, Totals
from openneutron.report.totals import merge_totals

_UNIT = 10  # costs are in 1/2^10 cycle
# Events of a run that are kept with their times; the largest models of the zoo make tens of thousands. Beyond that only
# sums are kept.
MOST_EVENTS = 1 << 20
ARRAY_MACS = (
    "MACs here are the array's, which multiplies the zeros of padding and of merged pixels too; "
    "profile the source, or keep the debug bundle, to see the layers' own"
)


@dataclass(frozen=True)
class Code:
    """One decoded microcode block with its bytes; `layers` are the compiler's kernels, if known."""

    where: str
    blocks: tuple[bytes, bytes, bytes]
    program: Program
    layers: tuple[Kernel, ...] = ()


def profile(codes: Sequence[Code], *, source: str) -> Report:
    """Run each block once on zeros (cycles do not depend on data) and add up its calls by kernel.

    MACs are the layer's if `layers` are known; otherwise those of the array, which also multiplies the zeros of padding and of
    merged pixels.
    """
    kernels: list[Kernel] = []
    events: list[Event] = []
    totals: list[Totals] = []
    notes = [] if all(code.layers for code in codes) else [ARRAY_MACS]
    for graph, code in enumerate(codes):
        outcome = _run(code)
        kernels += _kernels(graph, code, outcome.sums)
        if outcome.events is None:
            events += _sum_events(graph, outcome.sums)
            notes.append(
                f"graph {graph} makes {code.program.step_count:,} calls and copies: its timeline has their sums"
            )
        else:
            events += _events(graph, code, outcome.events)
        totals.append(outcome.totals)
    target = codes[0].program.target if codes else ""
    total = replace(merge_totals(totals), macs=sum(kernel.macs for kernel in kernels), neutron_graphs=len(codes))
    if codes:
        low, high = interval(total.milliseconds, unexercised=open_unexercised(targets.load(target), tuple(kernels)))
        total = replace(total, milliseconds_low=low, milliseconds_high=high)
    return Report(target, "open", "", source, total, kernels=tuple(kernels), events=tuple(events), notes=tuple(notes))


@dataclass(frozen=True)
class _Outcome:
    """One run; `events` is None if there are too many to keep."""

    sums: Sequence[Sums]
    events: Sequence[simulator.Event] | None
    totals: Totals


def _run(code: Code) -> _Outcome:
    with Simulator(*code.blocks, where=code.where) as machine:
        zeros = [np.zeros(tensor.shape, DTYPES[tensor.dtype]) for tensor in machine.inputs]
        events = machine.run_with_events(zeros)[1] if code.program.step_count <= MOST_EVENTS else None
        sums = machine.run_with_sums(zeros)[1] if events is None else _sum_up(events)
        info, cycles = machine.info, machine.cycles
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
    return _Outcome(sums, events, totals)


def _calls(program: Program) -> Iterator[Call]:
    """Yield each call once, however often it runs."""
    for item in program.instructions:
        yield from (step for step in (item.body if isinstance(item, Loop) else (item,)) if isinstance(step, Call))


def _kernels(graph: int, code: Code, sums: Sequence[Sums]) -> list[Kernel]:
    calls: dict[int, Call] = {}
    for step in _calls(code.program):
        calls.setdefault(step.tag, step)
    known = {layer.node: layer for layer in code.layers}
    of_tag: dict[int, list[Sums]] = {}
    for one in sums:
        if one.kernel:
            of_tag.setdefault(one.tag, []).append(one)
    found: list[Kernel] = []
    for tag, call in calls.items():
        mine = of_tag.get(tag)
        if mine is None:
            continue  # clipped to no rows
        kernel = Kernel(
            node=tag,
            graph=graph,
            kernel=abi.by_id(call.kernel).name,
            name=f"node {tag}",
            operators=(),
            output_shape=_shape(output_of(call)),
            macs=sum(one.macs for one in mine),
            calls=sum(one.calls for one in mine),
            cycles=sum(one.cycles for one in mine),
            compute_cycles=sum(one.cost.compute for one in mine) >> _UNIT,
            memory_cycles=sum(one.cost.memory for one in mine) >> _UNIT,
            overhead_cycles=sum(one.cost.overhead for one in mine) >> _UNIT,
            weight_bytes=_bytes(call, constant=True),
            activation_bytes=_bytes(call, constant=False),
        )
        layer = known.get(tag)
        if layer is not None and layer.kernel == kernel.kernel:
            # Costs are measured; facts about the layer come from the compiler, which knows more than the microcode.
            kernel = replace(
                kernel, name=layer.name, operators=layer.operators, output_shape=layer.output_shape, macs=layer.macs,
                notes=layer.notes, segment=layer.segment, tensor=layer.tensor, module=layer.module,
            )  # fmt: skip
        found.append(kernel)
    return found


def _sum_up(events: Sequence[simulator.Event]) -> list[Sums]:
    groups: dict[tuple[str, int], list[simulator.Event]] = {}
    for event in events:
        groups.setdefault((event.kernel, event.tag), []).append(event)
    return [
        Sums(
            kernel, tag, len(mine), sum(e.rows for e in mine), mine[0].start, mine[-1].end,
            sum(e.end - e.start for e in mine),
            Cost(*(sum(getattr(e.cost, part) for e in mine) for part in ("compute", "memory", "overhead"))),
            sum(e.macs for e in mine), sum(e.bytes for e in mine),
        )
        for (kernel, tag), mine in groups.items()
    ]  # fmt: skip


def _sum_events(graph: int, sums: Sequence[Sums]) -> list[Event]:
    """Return one event for each node and each copy channel."""
    return [
        Event(graph, one.tag, "array", one.kernel, 0, one.rows, one.start, one.end)
        if one.kernel
        else Event(graph, one.tag, "dma", "copy", 0, one.bytes, one.start, one.end)
        for one in sums
    ]


def _events(graph: int, code: Code, events: Sequence[simulator.Event]) -> list[Event]:
    """Return the run's events; copies get their bytes from the microcode."""
    found: list[Event] = []
    for (step, first, _), event in zip(steps(code.program), events, strict=True):
        if isinstance(step, Dma):
            found.append(Event(graph, step.channel, "dma", "copy", 0, step.bytes, event.start, event.end))
        else:
            found.append(Event(graph, event.tag, "array", event.kernel, first, event.rows, event.start, event.end))
    return found


def _shape(operand: Operand) -> tuple[int, ...]:
    return operand.batch, operand.height, operand.width, operand.channels


def _bytes(call: Call, *, constant: bool) -> int:
    """Return the bytes of the constant or of the other operands; an absent operand has none."""
    total = 0
    for role, operand in zip(abi.by_id(call.kernel).operands, call.operands, strict=True):
        named = role.removesuffix("?") in abi.CONSTANT_ROLES or operand.region is Region.WEIGHTS
        if named == constant and role.removesuffix("?") != "workspace":
            total += math.prod(_shape(operand)) * ITEM_BYTES[operand.dtype]
    return total
