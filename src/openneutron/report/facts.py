"""Facts of a report as labelled sentences, in the order users need them; terminal, HTML and `repr` show the same ones.

Example:
    >>> dict(facts(report))["estimate"]
    '196,912 cycles, 0.606 ms, 0.531 to 0.692 on imxrt700, open schedule'
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from openneutron.machine import targets
from openneutron.report.accuracy import METRIC_TITLES
from openneutron.report.cpu_time import sentence
from openneutron.report.fits import warnings_of
from openneutron.report.latency import latency
from openneutron.report.model import Kernel, NodeVerdict, Operator, OutputAccuracy, Report, Totals

# Reasons that a terminal shows before it counts the rest; --all and --json have all of them.
SHOWN_REASONS = 8
_IS_FLOAT = "is float32"


class CpuGroup(NamedTuple):
    """Nodes or operators that stayed on the CPU for the same reason."""

    operator: str
    names: tuple[str, ...]
    reason: str
    hint: str
    sources: tuple[str, ...] = ()

    def where(self, shown: int) -> str:
        """Return the first names, each with its source line, and the number of others."""
        lines = dict(zip(self.names, self.sources, strict=False))
        first = [f"{name} ({lines[name]})" if lines.get(name) else name for name in self.names[:shown]]
        more = len(self.names) - shown
        return ", ".join(first) + (f" and {more} more" if more > 0 else "")


def on_microcontroller(target: str) -> bool:
    """Return whether the target's runtime runs on a microcontroller host; Neutron-S has its own controller."""
    return target in targets.names() and not targets.load(target).subsystem


def runtime_sentence(totals: Totals) -> str:
    """Describe the RAM of a microcontroller that the open runtime takes.

    Example:
        >>> runtime_sentence(report.totals)
        '26,432 bytes of RAM on a microcontroller (21,312 arena with 9,008 context + 5,120 stack)'
    """
    arena = totals.context_bytes + totals.arena_bytes  # as a firmware image reports them
    parts = f"{arena:,} arena with {totals.context_bytes:,} context + {totals.stack_bytes:,} stack"
    return f"{totals.runtime_bytes:,} bytes of RAM on a microcontroller ({parts})"


def facts(report: Report) -> list[tuple[str, str]]:
    """Return label and sentence, the most important first; unknown facts are omitted."""
    totals = report.totals
    rows: list[tuple[str, str]] = []
    if report.nodes:
        counts = node_counts(report)
        rows.append(("nodes", f"{counts.delegated} of {counts.inner} on the NPU{counts.beside}"))
    graphs = f"{totals.neutron_graphs} NeutronGraph{'' if totals.neutron_graphs == 1 else 's'}"
    rows.append(("operators", f"{totals.operators_converted} of {totals.operators_total} LiteRT operators in {graphs}"))
    if totals.cycles:
        rows.append(("work", f"{totals.macs:,} MACs"))
        time = latency(totals.milliseconds, totals.milliseconds_low, totals.milliseconds_high)
        rows.append(("estimate", f"{totals.cycles:,} cycles, {time} on {report.target}, open schedule"))
        parts = f"{totals.io_bytes:,} I/O + {totals.scratch_bytes:,} scratch + {totals.prefetch_bytes:,} prefetch"
        rows.append(("peak memory", f"{totals.peak_bytes:,} bytes ({parts})"))
        if totals.runtime_bytes and on_microcontroller(report.target):
            rows.append(("open runtime", runtime_sentence(totals)))
    rows += _exactness(report)
    rows += _whole(report)
    if totals.weight_bytes or totals.microcode_bytes:
        rows.append(("flash", f"{totals.weight_bytes:,} bytes of weights, {totals.microcode_bytes:,} of microcode"))
    if report.files:
        rows.append(("files", ", ".join(f"{name} {size:,} bytes" for name, size in report.files.items())))
    if report.seconds:
        rows.append(("seconds", ", ".join(f"{stage} {took:.2f}" for stage, took in report.seconds.items())))
    rows += [("note", note) for note in report.notes]
    rows += [("warning", text) for text in warnings_of(report)]
    return rows


class Counts(NamedTuple):
    """Numbers of a model's nodes or operators: those on the NPU, all inner ones, and those at the border."""

    delegated: int
    inner: int
    border: int

    @property
    def beside(self) -> str:
        """The text about border nodes; "" without any."""
        many = "" if self.border == 1 else "s"
        return f", and {self.border} border node{many} on the CPU" if self.border else ""


def node_counts(report: Report) -> Counts:
    """Return how many nodes the NPU runs.

    Conversions at the border of the model, which every model has, count separately.

    Example:
        >>> node_counts(report)
        Counts(delegated=13, inner=13, border=2)
    """
    items: list[NodeVerdict | Operator] = [*report.nodes] if report.nodes else [*report.operators]
    border = len(_border(items))
    return Counts(sum(map(_on_npu, items)), len(items) - border, border)


def _exactness(report: Report) -> list[tuple[str, str]]:
    """Return how close results are to float, and to LiteRT's reference kernels, if measured."""
    parts = [] if report.output_sqnr is None else [f"{report.output_sqnr:.1f} dB SQNR against float"]
    if len(report.outputs) == 1 and report.output_sqnr is None:
        parts = [figure_of(report.outputs[0])]
    parts += filter(None, [worst_part(report)])
    exact = [kernel.lsb for kernel in report.kernels if kernel.lsb is not None]
    if exact:
        parts.append(f"{max(exact):g} LSB from LiteRT's reference in {len(exact)} layers")
    rows = [("accuracy", ", ".join(parts))] if parts else []
    for golden in dict.fromkeys(kernel.golden for kernel in report.kernels if kernel.golden):
        names = [kernel.name for kernel in report.kernels if kernel.golden == golden]
        rows.append(("compared", f"{', '.join(names)}: with {golden}"))
    return rows


def worst_part(report: Report) -> str:
    """Return the part of an output with the lowest SQNR, with its dB; "" if no output has parts.

    Example:
        >>> worst_part(report)
        '0.0 dB in columns 4..8 of output 0'
    """
    known = [(one.part_sqnr, one.part, one.name) for one in report.outputs if one.part_sqnr is not None]
    if not known:
        return ""
    decibels, part, name = min(known)
    return f"{decibels:.1f} dB in {part} of {name}"


def figure_of(one: OutputAccuracy) -> str:
    """Format an output's accuracy.

    Example:
        >>> figure_of(OutputAccuracy("output 1", agreement=0.98))
        'output 1 98.0% equal'
    """
    if one.sqnr is not None:
        kept = f" ({METRIC_TITLES[one.metric]} {one.kept:.1%})" if one.kept >= 0 else ""
        return f"{one.name} {one.sqnr:.1f} dB{kept}"
    return f"{one.name} {one.agreement:.1%} equal" if one.agreement >= 0 else f"{one.name} {one.note}"


def _whole(report: Report) -> list[tuple[str, str]]:
    """Return the facts about NPU and CPU together, if there is a CPU model."""
    whole = report.whole
    if not whole.recipe:
        return []
    engines = {
        engine: sum(node.engine == engine for node in report.nodes) for engine in ("neutron", "cortex_m", "portable")
    }
    shares = ", ".join(f"{count} {engine}" for engine, count in engines.items() if count)
    between = whole.call_milliseconds + whole.copy_milliseconds
    parts = f"NPU {whole.npu_milliseconds:.3f} + CPU {whole.cpu_milliseconds:.3f} + calls and copies {between:.3f}"
    memory = f"{whole.arena_bytes:,} arena + {whole.delegate_bytes:,} delegates"
    time = f"{latency(whole.milliseconds, whole.milliseconds_low, whole.milliseconds_high)} estimated ({parts})"
    if not whole.timed:
        time = (
            f"no estimate: there is no model of the CPU of {report.target}, which runs {whole.cpu_operators} operators"
        )
    return [
        ("engines", f"{shares} (recipe {whole.recipe})"),
        ("whole program", time),
        *([("CPU", sentence(report))] if whole.cpu else []),
        ("whole memory", f"{whole.memory_bytes:,} bytes ({memory})"),
    ]


def left_on_cpu(report: Report) -> list[CpuGroup]:
    """Return the nodes that were not delegated, grouped by operator and reason, in the order of the program.

    A program from PyTorch lists its nodes, a LiteRT file its operators.
    """
    items: tuple[NodeVerdict, ...] | tuple[Operator, ...] = report.nodes or report.operators
    groups: dict[tuple[str, str, str], list[tuple[str, str]]] = {}
    for item in items:
        if isinstance(item, NodeVerdict):
            if not item.delegated:
                groups.setdefault((item.operator, item.reason, item.hint), []).append((item.name, item.source))
        elif not item.converted:
            groups.setdefault((item.code, item.reason, item.hint), []).append((item.name, ""))
    lefts = []
    for (operator, reason, hint), found in groups.items():
        names, sources = zip(*found, strict=True)
        lefts.append(CpuGroup(operator, names, reason, hint, sources if any(sources) else ()))
    return lefts


class Leftovers(NamedTuple):
    """Groups of nodes on the CPU; `hidden` counts groups beyond the list, `border` nodes that only convert at the border."""

    groups: tuple[CpuGroup, ...] = ()
    hidden: int = 0
    border: int = 0

    @property
    def more(self) -> str:
        """A line about unlisted nodes; "" if all are listed."""
        hidden = f"{self.hidden} more reason{'' if self.hidden == 1 else 's'} (--all shows them)" if self.hidden else ""
        border = f"{self.border} at the border, from or to the types outside" if self.border else ""
        return f"and {', and '.join(filter(None, (hidden, border)))}" if self.groups and (hidden or border) else ""


def leftovers_of(report: Report, count: int = SHOWN_REASONS) -> Leftovers:
    """Return the nodes on the CPU as groups by reason, the most frequent first, at most `count` groups (0: all).

    Reasons that differ only in a tensor's name form one group. Quantize and dequantize at the model's border are counted, not
    listed; for a float model one group says that it is not quantized.
    """
    items = [*report.nodes] if report.nodes else [*report.operators]
    border = _border(items)
    left = [item for item in items if not _on_npu(item) and _name(item) not in border]
    if left and len(left) == len(items) and all(_IS_FLOAT in item.reason for item in left):
        kinds = _kinds(left)
        why = f"this model is float32, so nothing of it runs on the NPU ({len(left)} operators)"
        return Leftovers((CpuGroup(kinds, (), why, left[0].hint),))
    groups: dict[tuple[str, str], list[NodeVerdict | Operator]] = {}
    for item in left:
        groups.setdefault((re.sub(r"tensor '[^']*'", "a tensor", item.reason), item.hint), []).append(item)
    found = []
    for (reason, hint), members in groups.items():
        reasons = {item.reason for item in members}
        sources = tuple(item.source if isinstance(item, NodeVerdict) else "" for item in members)
        names = tuple(map(_name, members))
        message = reasons.pop() if len(reasons) == 1 else reason
        found.append(CpuGroup(_kinds(members), names, message, hint, sources if any(sources) else ()))
    found.sort(key=lambda group: -len(group.names))
    shown = found[:count] if count else found
    return Leftovers(tuple(shown), len(found) - len(shown), len(border))


def _on_npu(item: NodeVerdict | Operator) -> bool:
    return item.delegated if isinstance(item, NodeVerdict) else item.converted


def _name(item: NodeVerdict | Operator) -> str:
    return item.name


def _kind(item: NodeVerdict | Operator) -> str:
    return item.operator if isinstance(item, NodeVerdict) else item.code


def _kinds(items: Sequence[NodeVerdict | Operator]) -> str:
    """Return the operators with their counts: "CONV_2D x12, ADD"."""
    counts = Counter(map(_kind, items))
    return ", ".join(f"{kind} x{number}" if number > 1 else kind for kind, number in counts.most_common())


def _border(items: Sequence[NodeVerdict | Operator]) -> set[str]:
    """Return the names of nodes that only quantize an input of the model, or dequantize an output, on the CPU."""
    keys = {item.name if isinstance(item, NodeVerdict) else item.index for item in items}
    read = {key for item in items for key in item.inputs}
    found = set()
    for item in items:
        key = item.name if isinstance(item, NodeVerdict) else item.index
        kind = _kind(item).lower()
        back = "dequantize" in kind
        first = not any(one in keys for one in item.inputs)
        if not _on_npu(item) and "quantize" in kind and (key not in read if back else first):
            found.add(item.name)
    return found


def costliest(report: Report, count: int) -> list[Kernel]:
    """Return the kernels with the most cycles, the largest first."""
    return sorted(report.kernels, key=lambda kernel: (-kernel.cycles, kernel.graph, kernel.node))[:count]


def share(kernel: Kernel, report: Report) -> float:
    """Return the kernel's share of all kernel cycles, 0 to 1."""
    total = sum(one.cycles for one in report.kernels)
    return kernel.cycles / total if total else 0.0


def title(report: Report) -> str:
    """Return a line with the model, the target and the compiler."""
    made_by = " ".join(filter(None, (report.converter, report.converter_version)))
    return f"{report.source or 'model'} for {report.target} ({made_by})"
