"""What people ask a report first, as labelled sentences; terminal, HTML and `repr` show the same ones.

Example:
    >>> dict(facts(report))["estimate"]
    '196,912 cycles, 0.606 ms, 0.531 to 0.692 on imxrt700, open schedule'
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from openneutron.records import dataclass
from openneutron.report.fits import warnings_of
from openneutron.report.latency import latency
from openneutron.report.model import Kernel, Node, Operator, Report

# Reasons that a terminal shows before it counts the rest; --all and --json have all of them.
SHOWN_REASONS = 8
_IS_FLOAT = "is float32"


@dataclass(frozen=True)
class Left:
    """Nodes or operators that stayed on the CPU for the same reason."""

    operator: str
    names: tuple[str, ...]
    reason: str
    hint: str
    sources: tuple[str, ...] = ()

    def where(self, shown: int) -> str:
        """The first names, each with the line of the model it comes from, and how many more there are."""
        lines = dict(zip(self.names, self.sources, strict=False))
        first = [f"{name} ({lines[name]})" if lines.get(name) else name for name in self.names[:shown]]
        more = len(self.names) - shown
        return ", ".join(first) + (f" and {more} more" if more > 0 else "")


def facts(report: Report) -> list[tuple[str, str]]:
    """Label and sentence, in the order of interest; what a report does not know is left out."""
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


@dataclass(frozen=True)
class Counts:
    """Nodes or operators of a model: those on the NPU, all inner ones, and those that only form the border."""

    delegated: int
    inner: int
    border: int

    @property
    def beside(self) -> str:
        """What to say after the figures about the border; "" without one."""
        many = "" if self.border == 1 else "s"
        return f", and {self.border} border node{many} on the CPU" if self.border else ""


def node_counts(report: Report) -> Counts:
    """How many nodes the NPU runs. Conversions at the border of the model are counted apart: every model has them.

    Example:
        >>> node_counts(report)
        Counts(delegated=13, inner=13, border=2)
    """
    items: list[Node | Operator] = [*report.nodes] if report.nodes else [*report.operators]
    border = len(_border(items))
    return Counts(sum(map(_on_npu, items)), len(items) - border, border)


def _exactness(report: Report) -> list[tuple[str, str]]:
    """How close results are to float, and to LiteRT's reference kernels, where that was measured."""
    parts = [] if report.output_sqnr is None else [f"{report.output_sqnr:.1f} dB SQNR against float"]
    exact = [kernel.lsb for kernel in report.kernels if kernel.lsb is not None]
    if exact:
        parts.append(f"{max(exact):g} LSB from LiteRT's reference in {len(exact)} layers")
    rows = [("accuracy", ", ".join(parts))] if parts else []
    for golden in dict.fromkeys(kernel.golden for kernel in report.kernels if kernel.golden):
        names = [kernel.name for kernel in report.kernels if kernel.golden == golden]
        rows.append(("compared", f"{', '.join(names)}: with {golden}"))
    return rows


def _whole(report: Report) -> list[tuple[str, str]]:
    """NPU and CPU together, where a CPU model exists."""
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
        ("whole memory", f"{whole.memory_bytes:,} bytes ({memory})"),
    ]


def left_on_cpu(report: Report) -> list[Left]:
    """What was not delegated, gathered by operator and reason, in the order of the program.

    A program from PyTorch is told by its nodes, a LiteRT file by its operators.
    """
    items: tuple[Node, ...] | tuple[Operator, ...] = report.nodes or report.operators
    groups: dict[tuple[str, str, str], list[tuple[str, str]]] = {}
    for item in items:
        if isinstance(item, Node):
            if not item.delegated:
                groups.setdefault((item.operator, item.reason, item.hint), []).append((item.name, item.source))
        elif not item.converted:
            groups.setdefault((item.code, item.reason, item.hint), []).append((item.name, ""))
    lefts = []
    for (operator, reason, hint), found in groups.items():
        names, sources = zip(*found, strict=True)
        lefts.append(Left(operator, names, reason, hint, sources if any(sources) else ()))
    return lefts


@dataclass(frozen=True)
class Leftovers:
    """What a terminal shows of the rest: the groups, how many were left out, and how many nodes only form the border."""

    groups: tuple[Left, ...] = ()
    hidden: int = 0
    border: int = 0

    @property
    def more(self) -> str:
        """What is not in the groups, as a line; "" when all is."""
        hidden = f"{self.hidden} more reason{'' if self.hidden == 1 else 's'} (--all shows them)" if self.hidden else ""
        border = f"{self.border} at the border, from or to the types outside" if self.border else ""
        return f"and {', and '.join(filter(None, (hidden, border)))}" if self.groups and (hidden or border) else ""


def leftovers_of(report: Report, count: int = SHOWN_REASONS) -> Leftovers:
    """What stayed on the CPU as people read it: one group per reason, the most frequent first, `count` of them (0: all).

    Reasons that differ only in the tensor they name are one. Quantize and dequantize at the model's border are counted, not
    listed; a model in float is told once.
    """
    items = [*report.nodes] if report.nodes else [*report.operators]
    border = _border(items)
    left = [item for item in items if not _on_npu(item) and _name(item) not in border]
    if left and len(left) == len(items) and all(_IS_FLOAT in item.reason for item in left):
        kinds = _kinds(left)
        why = f"this model is float32, so nothing of it runs on the NPU ({len(left)} operators)"
        return Leftovers((Left(kinds, (), why, left[0].hint),))
    groups: dict[tuple[str, str], list[Node | Operator]] = {}
    for item in left:
        groups.setdefault((re.sub(r"tensor '[^']*'", "a tensor", item.reason), item.hint), []).append(item)
    found = []
    for (reason, hint), members in groups.items():
        reasons = {item.reason for item in members}
        sources = tuple(item.source if isinstance(item, Node) else "" for item in members)
        names = tuple(map(_name, members))
        told = reasons.pop() if len(reasons) == 1 else reason
        found.append(Left(_kinds(members), names, told, hint, sources if any(sources) else ()))
    found.sort(key=lambda group: -len(group.names))
    shown = found[:count] if count else found
    return Leftovers(tuple(shown), len(found) - len(shown), len(border))


def _on_npu(item: Node | Operator) -> bool:
    return item.delegated if isinstance(item, Node) else item.converted


def _name(item: Node | Operator) -> str:
    return item.name


def _kind(item: Node | Operator) -> str:
    return item.operator if isinstance(item, Node) else item.code


def _kinds(items: Sequence[Node | Operator]) -> str:
    """The operators with how often each is there: "CONV_2D x12, ADD"."""
    counts = Counter(map(_kind, items))
    return ", ".join(f"{kind} x{number}" if number > 1 else kind for kind, number in counts.most_common())


def _border(items: Sequence[Node | Operator]) -> set[str]:
    """Names of what only quantizes an input of the model, or dequantizes an output of it, on the CPU."""
    keys = {item.name if isinstance(item, Node) else item.index for item in items}
    read = {key for item in items for key in item.inputs}
    found = set()
    for item in items:
        key = item.name if isinstance(item, Node) else item.index
        kind = _kind(item).lower()
        back = "dequantize" in kind
        first = not any(one in keys for one in item.inputs)
        if not _on_npu(item) and "quantize" in kind and (key not in read if back else first):
            found.add(item.name)
    return found


def costliest(report: Report, count: int) -> list[Kernel]:
    """The kernels with the most cycles, the largest first."""
    return sorted(report.kernels, key=lambda kernel: (-kernel.cycles, kernel.graph, kernel.node))[:count]


def share(kernel: Kernel, report: Report) -> float:
    """The kernel's part of all kernel cycles, 0 to 1."""
    total = sum(one.cycles for one in report.kernels)
    return kernel.cycles / total if total else 0.0


def title(report: Report) -> str:
    """One line that says what was compiled, for what, by whom."""
    made_by = " ".join(filter(None, (report.converter, report.converter_version)))
    return f"{report.source or 'model'} for {report.target} ({made_by})"
