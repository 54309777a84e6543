"""What people ask a report first, as labelled sentences; terminal, HTML and `repr` show the same ones.

Example:
    >>> dict(facts(report))["estimate"]
    '196,912 cycles, 0.606 ms, 0.531 to 0.692 on imxrt700, open schedule'
"""

from __future__ import annotations

from dataclasses import dataclass

from openneutron.report.fits import warnings_of
from openneutron.report.latency import latency
from openneutron.report.model import Kernel, Node, Operator, Report


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
        delegated = sum(node.delegated for node in report.nodes)
        rows.append(("nodes", f"{delegated} delegated, {len(report.nodes) - delegated} left on the CPU"))
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
