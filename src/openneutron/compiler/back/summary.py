"""Makes the report of a conversion from its compiled parts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from openneutron.compiler.back.predict import Timed
from openneutron.compiler.l1 import ITEM_BYTES, KernelGraph, Value
from openneutron.compiler.l2 import TaskList
from openneutron.compiler.plan.segments import Segment
from openneutron.litert.graph import Graph, Operator
from openneutron.machine.runtime_memory import STACK_BYTES, RuntimeMemory
from openneutron.machine.targets import Target
from openneutron.microcode.instructions import Program
from openneutron.microcode.table import Region
from openneutron.options import Options
from openneutron.report import model as report
from openneutron.verdict import Reason


@dataclass
class Part:
    """One NeutronGraph as the report sees it; `operators` maps the group's operators to those of the model."""

    index: int
    operators: list[int]
    graph: KernelGraph
    segments: list[Segment]
    tasks: TaskList
    program: Program
    microcode_bytes: int
    weight_bytes: int
    events: list[Timed]
    cycles: int
    passes: dict[str, int]
    memory: RuntimeMemory
    pareto: tuple[tuple[int, int], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def io_bytes(self) -> int:
        """Size of the caller's buffers and of the states."""
        return sum(row.bytes for row in self.program.tensors) + self.program.state_bytes


def _home(graph: KernelGraph, output: Value) -> tuple[int, int]:
    """Return the LiteRT tensor that holds a value, and the value's first channel in it."""
    if output.tensor >= 0 or output.alias is None:
        return output.tensor, 0
    root = graph.values[output.alias.root]
    channel = output.alias.offset // ITEM_BYTES[root.dtype]
    if output.shape[:3] != root.shape[:3] or output.dtype != root.dtype or channel >= root.shape[3]:
        return -1, 0
    return root.tensor, channel


def _kernels(part: Part) -> list[report.Kernel]:
    found: list[report.Kernel] = []
    events: list[list[Timed]] = [[] for _ in part.graph.nodes]
    for event in part.events:
        if event.lane == "array":
            events[event.node].append(event)
    segments = {at: i for i, s in enumerate(part.segments) for at in range(s.first, s.last + 1)}
    for at, node in enumerate(part.graph.nodes):
        mine, segment = events[at], segments[at]
        output = part.graph.values[node.output]
        tensor, channel = _home(part.graph, output)
        found.append(
            report.Kernel(
                node=at,
                graph=part.index,
                kernel=node.kernel,
                name=output.name,
                operators=tuple(part.operators[i] for i in node.sources),
                output_shape=output.shape,
                macs=node.macs,
                calls=len(mine),
                cycles=sum(e.end - e.start for e in mine),
                compute_cycles=sum(e.compute for e in mine) >> 10,
                memory_cycles=sum(e.memory for e in mine) >> 10,
                overhead_cycles=sum(e.overhead for e in mine) >> 10,
                weight_bytes=sum(o.size for o in node.operands if o is not None and not isinstance(o, int)),
                segment=segment,
                notes=node.notes,
                activation_bytes=sum(part.graph.values[v].bytes for v in {*node.inputs(), node.output}),
                tensor=tensor,
                first_channel=channel,
            )
        )
    return found


def _operators(
    source: list[Operator], graph: Graph, reasons: dict[int, Reason], parts: list[Part], folded: Collection[int]
) -> list[report.Operator]:
    homes = {op: part.index for part in parts for op in part.operators}
    makers = {tensor: index for index, op in enumerate(source) for tensor in op.outputs}
    found: list[report.Operator] = []
    for index, op in enumerate(source):
        reason = reasons.get(index)
        found.append(
            report.Operator(
                index=index,
                code=op.custom_code or op.code,
                name=graph.tensors[op.outputs[0]].name if op.outputs else "",
                converted=index in homes or index in folded,
                reason=reason.message if reason else "",
                reason_code=reason.code if reason else "",
                hint=reason.hint if reason else "",
                graph=homes.get(index, -1),
                inputs=tuple(dict.fromkeys(makers[tensor] for tensor in op.inputs if tensor in makers)),
            )
        )
    return found


def report_of(
    graph: Graph, source: list[Operator], reasons: dict[int, Reason], parts: list[Part], target: Target,
    options: Options, version: str, *, folded: Collection[int] = (),
) -> report.Report:  # fmt: skip
    """Return the report of one conversion; `folded` operators became constants, so no processor runs them."""
    operators = _operators(source, graph, reasons, parts, folded)
    cycles = sum(part.cycles for part in parts)
    totals = report.Totals(
        macs=sum(node.macs for part in parts for node in part.graph.nodes),
        cycles=cycles,
        milliseconds=target.milliseconds(cycles),
        peak_bytes=max((p.io_bytes + p.tasks.held_bytes for p in parts), default=0),
        io_bytes=max((p.io_bytes for p in parts), default=0),
        scratch_bytes=max((p.tasks.scratch_bytes for p in parts), default=0),
        tcm_bytes=max((p.tasks.tcm_bytes for p in parts), default=0),
        prefetch_bytes=max((p.tasks.prefetch_bytes for p in parts), default=0),
        weight_bytes=sum(p.weight_bytes for p in parts),
        microcode_bytes=sum(p.microcode_bytes for p in parts),
        operators_total=len(operators),
        operators_converted=sum(op.converted for op in operators),
        neutron_graphs=len(parts),
        context_bytes=sum(p.memory.context_bytes for p in parts),
        arena_bytes=max((p.memory.arena_bytes for p in parts), default=0),
        stack_bytes=STACK_BYTES if parts else 0,
    )
    counts: dict[str, int] = {}
    for part in parts:
        for name, count in part.passes.items():
            counts[name] = counts.get(name, 0) + count
    return report.Report(
        target=target.name,
        converter="open",
        converter_version=version,
        source=options.source,
        totals=totals,
        operators=tuple(operators),
        kernels=tuple(kernel for part in parts for kernel in _kernels(part)),
        events=tuple(
            report.Event(p.index, e.node, e.lane, e.kernel, e.first_row, e.rows, e.start, e.end)
            for p in parts
            for e in p.events
        ),
        buffers=tuple(
            report.Buffer(p.index, b.name, b.region.name.lower(), b.offset, b.size, b.first, b.last)
            for p in parts
            for b in p.tasks.buffers
            if b.region in (Region.SCRATCH, Region.PREFETCH, Region.TCM) and b.first >= 0
        ),
        pareto=tuple(report.Choice(p.index, scratch, cost) for p in parts for scratch, cost in p.pareto),
        passes=counts,
        notes=tuple(note for part in parts for note in part.notes),
    )
