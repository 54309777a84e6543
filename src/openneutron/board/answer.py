"""Stock answer: a model's plan by NXP's rules, its memory on the board, and its time with an interval."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from openneutron.board.arena import Step, arena_bytes, method_bytes, planned_bytes
from openneutron.board.cpu import CORTEX_M, delegate_call, on_core
from openneutron.board.fit import Learned, public_prior
from openneutron.board.flash import constant_bytes, kernel_bytes, microcode_bytes, prefetch_bytes, weight_bytes
from openneutron.board.interval import LEFT_OUT, interval, unexercised_share
from openneutron.board.loops import CpuWork, called_bytes
from openneutron.board.placing import place
from openneutron.board.plan import StockPlan, stock_plan, unfilled_outputs
from openneutron.board.sdk import NO_OUTPUT_PADDING, PADDED_AND_SLICED, Rules, rules
from openneutron.board.workload import NEUTRON_C, workload_of
from openneutron.compiler.front.ingest import extract
from openneutron.compiler.front.parsed_model import ParsedModel
from openneutron.compiler.pause_gc import pause_gc
from openneutron.litert.graph import Graph, Model, Operator
from openneutron.litert.read import read_model
from openneutron.machine import targets
from openneutron.machine.targets import Target
from openneutron.options import SDK_VERSIONS
from openneutron.report.model import CpuTime, Kernel, Report, Stock
from openneutron.verdict import Reason

NOTHING_CONVERTED = "NXP's converter takes no operator of this model: all of it runs on the CPU"


class Converted(NamedTuple):
    """A model as NXP's converter would leave it: NeutronGraphs with their plans, and operators on the CPU with reasons.

    There is one plan per group of operators; `steps` are both kinds in execution order. `by` are the rules it was made with.
    """

    model: Model
    plans: tuple[StockPlan, ...]
    groups: tuple[tuple[int, ...], ...]
    left: dict[int, Reason]
    folded: int
    steps: tuple[Step, ...]
    by: Rules

    @property
    def graph(self) -> Graph:
        """The main graph."""
        return self.model.main


@pause_gc()
def converted_by_stock(
    model: bytes | ParsedModel,
    target: Target,
    *,
    fetch_constants: bool = False,
    source: str = "<model>",
    sdk: str = SDK_VERSIONS[-1],
    by: Rules | None = None,
) -> Converted:
    """Place and plan a LiteRT model by the rules of a version of NXP's converter; a parsed model is not changed."""
    by = by or rules(target.name, sdk)
    opened = model if isinstance(model, ParsedModel) else ParsedModel(read_model(model, source=source), target)
    graph, folded, checks = opened.graph, opened.folded, opened.checks
    cut = place(graph, target, folded, checks, by)
    plans: list[StockPlan] = []
    groups: list[tuple[int, ...]] = []
    steps: list[Step] = []
    for group in cut.groups:
        if group.converted:
            part, inputs, outputs = extract(graph, group)
            plan = stock_plan(part, target, fetch_constants=fetch_constants, checks=checks, by=by)
            plans.append(plan)
            groups.append(tuple(group.operators))
            steps.append(Step(tuple(inputs), tuple(outputs), plan.tasks.scratch_bytes if by.scratch else 0))
            # A slice on the CPU takes the padded output apart.
            if by.pads_output not in (NO_OUTPUT_PADDING, PADDED_AND_SLICED):
                steps += [Step((), ())] * len(unfilled_outputs(part, target))
            continue
        for index in group.operators:
            op = graph.operators[index]
            steps.append(Step(tuple(op.inputs), tuple(op.outputs), operator=index))
    left = {index: reason for index, reason in cut.reasons.items() if index not in folded}
    return Converted(opened.model, tuple(plans), tuple(groups), left, len(folded), tuple(steps), by)


def stock_answer(
    model: bytes | ParsedModel,
    target: Target,
    *,
    fetch_constants: bool = False,
    source: str = "<model>",
    learned: Learned | None = None,
    sdk: str = SDK_VERSIONS[-1],
    by: Rules | None = None,
) -> Stock:
    """Return what NXP's converter and runtime would do with a LiteRT model.

    `learned` are a user's own points, `sdk` the converter's version, `by` other rules than its own.

    Example:
        >>> stock_answer(Path("cifarnet.tflite").read_bytes(), targets.load("mcxn94x")).scratch_bytes
        40960
    """
    made = converted_by_stock(model, target, fetch_constants=fetch_constants, source=source, sdk=sdk, by=by)
    graph, by = made.graph, made.by
    cpu: Counter[str] = Counter()
    cpu_work = CpuWork(made.model, on_core(CORTEX_M, target))
    parts: list[CpuTime] = []
    for index in made.left:
        op = graph.operators[index]
        spent = cpu_work.operator(graph, op)
        cpu.update(spent)
        parts.append(_cpu_time(graph, op, spent.total() / target.cpu_clock_hz * 1e3))
    npu: Counter[str] = Counter()
    for plan in made.plans:
        for event in plan.events:
            npu[event.kernel] += event.end - event.start
    cycles = sum(plan.cycles for plan in made.plans)
    npu_milliseconds = target.milliseconds(cycles)
    calls = delegate_call(target) * len(made.plans)
    cpu_milliseconds = (sum(cpu.values()) + calls) / target.cpu_clock_hz * 1e3
    errors, doubt = LEFT_OUT, 0.0
    if made.plans and target.name in NEUTRON_C:
        work = workload_of(made, target)
        belief = learned.belief if learned else public_prior()
        doubt = belief.doubt(work)
        if learned is not None:
            npu_milliseconds = work.npu_milliseconds(belief.constants)
            cpu_milliseconds = work.cpu_milliseconds(belief.constants)
            errors = learned.errors
    milliseconds = npu_milliseconds + cpu_milliseconds
    low, high = interval(milliseconds, unexercised=unexercised_share(target, npu, cpu), errors=errors, doubt=doubt)
    operators = [[graph.operators[i] for i in group] for group in made.groups]
    planned = planned_bytes(graph, made.steps)
    fetches = any(plan.tasks.prefetch_bytes for plan in made.plans)
    return Stock(
        sdk=sdk,
        operators_total=len(graph.operators),
        operators_converted=sum(map(len, made.groups)) + made.folded,
        graphs=len(made.plans),
        kernel_calls=sum(plan.calls for plan in made.plans),
        scratch_bytes=max((plan.tasks.scratch_bytes for plan in made.plans), default=0) if by.scratch else 0,
        arena_bytes=arena_bytes(graph, made.steps, by.interpreter_bytes),
        planned_bytes=planned,
        method_bytes=method_bytes(planned),
        prefetch_bytes=max((prefetch_bytes(graph, ops, target, by) for ops in operators), default=0) * fetches,
        weight_bytes=sum(weight_bytes(graph, ops, target, by) for ops in operators),
        microcode_bytes=sum(microcode_bytes(p.calls, graph, o, by) for p, o in zip(made.plans, operators, strict=True)),
        kernel_bytes=max((kernel_bytes(ops, by) for ops in operators), default=0),
        cpu_constant_bytes=constant_bytes(graph, made.left)
        + called_bytes(made.model, [graph.operators[index] for index in made.left]),
        cycles=cycles,
        milliseconds=milliseconds,
        milliseconds_low=low,
        milliseconds_high=high,
        npu_milliseconds=npu_milliseconds,
        cpu_milliseconds=cpu_milliseconds,
        left=_reasons(graph, made.left),
        notes=_notes(target, made, cpu_work.unknown, learned),
        cpu=_scale_parts([*parts, *_calls(target, len(made.plans))], cpu_milliseconds),
    )


def _cpu_time(graph: Graph, op: Operator, milliseconds: float) -> CpuTime:
    name = graph.tensors[op.outputs[0]].name if op.outputs else ""
    return CpuTime(name, op.custom_code or op.code, "litert", milliseconds)


def _calls(target: Target, graphs: int) -> list[CpuTime]:
    each = delegate_call(target) / target.cpu_clock_hz * 1e3
    return [CpuTime(f"NeutronGraph {index}", "call", "call", each) for index in range(graphs)]


def _scale_parts(parts: Sequence[CpuTime], total: float) -> tuple[CpuTime, ...]:
    """Return the parts that take time, in proportion: what is learned from points changes their total only."""
    before = math.fsum(part.milliseconds for part in parts)
    factor = total / before if before else 0.0
    return tuple(replace(part, milliseconds=part.milliseconds * factor) for part in parts if part.milliseconds)


def with_board(
    report: Report,
    model: bytes | ParsedModel,
    *,
    fetch_constants: bool = False,
    learned: Learned | None = None,
    sdk: str = SDK_VERSIONS[-1],
) -> Report:
    """Return the report of a LiteRT model with the stock answer and an interval around our own estimate."""
    target = targets.load(report.target)
    stock = stock_answer(model, target, fetch_constants=fetch_constants, source=report.source, learned=learned, sdk=sdk)
    return replace(with_open_interval(report), stock=stock)


def with_open_interval(report: Report) -> Report:
    """Return the report of an open schedule with an interval around its time."""
    totals, target = report.totals, targets.load(report.target)
    low, high = interval(totals.milliseconds, unexercised=open_unexercised(target, report.kernels))
    return replace(report, totals=replace(totals, milliseconds_low=low, milliseconds_high=high))


def open_unexercised(target: Target, kernels: tuple[Kernel, ...]) -> float:
    """Return the share of an open schedule's time that no published latency covers."""
    cycles: Counter[str] = Counter()
    for kernel in kernels:
        # All published latencies are of whole tensors: none measures the overhead of calls on a few rows.
        beside = kernel.overhead_cycles if kernel.calls > 1 else 0
        cycles[kernel.kernel] += kernel.cycles - beside
        cycles["set-up of stripes"] += beside
    return unexercised_share(target, cycles, {})


def _reasons(graph: Graph, left: dict[int, Reason]) -> tuple[str, ...]:
    """Return one sentence per operator code and kind of reason, the first of each, with its number of occurrences."""
    found: dict[tuple[str, str], list[str]] = {}
    for index, reason in sorted(left.items()):
        op = graph.operators[index]
        found.setdefault((op.custom_code or op.code, reason.code), []).append(reason.message)
    return tuple(f"{len(messages)} x {code}: {messages[0]}" for (code, _), messages in found.items())


def _notes(target: Target, made: Converted, unknown: int, learned: Learned | None) -> tuple[str, ...]:
    notes = [] if made.plans else [NOTHING_CONVERTED]
    if learned is not None and target.name in NEUTRON_C:
        notes.append(learned.note())
    elif learned is not None:
        notes.append(f"nothing is learned from {learned.source}: it can change times of {' and '.join(NEUTRON_C)} only")
    if unknown:
        notes.append(f"the time of {unknown} WHILE is that of one trip: how many there are is not known")
    if not target.calibrated:
        notes.append(
            f"no latency of {target.name} is published that could check these milliseconds; its CPU's are assumed"
        )
    if made.plans and made.by.note(target.name):
        notes.append(made.by.note(target.name))
    return tuple(notes)
