"""The report as one HTML file that opens offline, with all styles and scripts inline.

Example:
    >>> Path("report.html").write_text(page(program.report))
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from openneutron.machine import targets
from openneutron.report import columns, cpu_time
from openneutron.report.facts import left_on_cpu, node_counts, share, title, worst_part
from openneutron.report.fits import stored_bytes, warnings_of
from openneutron.report.html.advice import advice
from openneutron.report.html.graph_view import Box, graph_of
from openneutron.report.html.memory import memory_maps
from openneutron.report.html.pareto import pareto
from openneutron.report.html.roofline import roofline
from openneutron.report.html.text import short, size
from openneutron.report.latency import in_ms, latency
from openneutron.report.model import Kernel, Report, Stock, Totals, Whole

if TYPE_CHECKING:
    from jinja2 import Environment

_HOSTS = {"cortex_m": "the CPU, in a Cortex-M kernel", "portable": "the CPU, in a portable kernel"}
LOW_SQNR = 20.0  # dB; below, a tenth of a layer's output is noise
_SCRIPTS = ("tips.js", "graph_layout.js", "graph_modules.js", "graph_pane.js", "graph.js", "table.js", "timeline.js")


@dataclass(frozen=True)
class Tile:
    """One figure of the page's head; `part` of 0 to 1 draws a bar below it, -1 none."""

    label: str
    figure: str
    unit: str
    note: str
    part: float = -1.0


def page(report: Report) -> str:
    """Return the whole page as text; the same report gives the same text.

    Example:
        >>> page(Report(target="imxrt700")).startswith("<!doctype html>")
        True
    """
    graph, offers = graph_of(report), advice(report)
    kernels = {(kernel.graph, kernel.node): at for at, kernel in enumerate(report.kernels)}
    data = {
        "boxes": [_draw(box, report) for box in graph.boxes],
        "cycles": report.totals.cycles,
        "timeline": _timeline(report, kernels),
    }
    text = environment().get_template("page.html.j2").render(
        title=title(report),
        report=report,
        tiles=tiles(report),
        both=columns.rows(report),
        cpu=cpu_time.rows(report),
        columns=columns,
        latency=latency,
        graph=graph,
        maps=memory_maps(report),
        charts=[chart for chart in (pareto(report), roofline(report)) if chart is not None],
        rows=[_row(kernel, report) for kernel in report.kernels],
        shown={what: any(getattr(k, what) is not None for k in report.kernels) for what in ("sqnr", "lsb")},
        costliest=max((share(kernel, report) for kernel in report.kernels), default=0.0) or 1.0,
        advice=[one for one in offers if one.helps],
        tried=[one for one in offers if not one.helps],
        rewrites={name: count for name, count in report.passes.items() if count},
        left=left_on_cpu(report),
        warnings=warnings_of(report),
        # "<" would let a name close the script element.
        data=json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
        style=asset("page.css"),
        script=page_script(),
    )  # fmt: skip
    return text


def page_script() -> str:
    """Return the page's script exactly as its element holds it."""
    return "\n" + "\n".join(asset(name) for name in _SCRIPTS) + "\n"


def tiles(report: Report) -> list[Tile]:
    """Return the most important figures."""
    totals = report.totals
    known = targets.load(report.target) if report.target in targets.names() else None
    found: list[Tile] = []
    clock = f" at {known.clock_hz / 1e6:g} MHz" if known else ""
    stock = cpu_time.on_board(report)
    if stock.operators_total:
        note = f"{_interval(stock)}{size(stock.arena_bytes)}; by NXP's converter, estimated"
        found.append(Tile("On a board", in_ms(stock.milliseconds), "ms", note))
    if report.whole.recipe and report.whole.timed:
        whole = report.whole
        note = f"{_interval(whole)}NPU {in_ms(whole.npu_milliseconds)}, CPU {in_ms(whole.cpu_milliseconds)}"
        note += f", calls and copies {in_ms(whole.call_milliseconds + whole.copy_milliseconds)}"
        found.append(Tile("Open schedule", in_ms(whole.milliseconds), "ms", note))
    if totals.cycles:
        core = known is not None and known.processor
        label = "Compiled part" if core else "NPU alone" if report.whole.recipe else "NPU, open schedule"
        note = f"{_interval(totals)}{totals.cycles:,} cycles{clock}"
        found.append(Tile(label, in_ms(totals.milliseconds), "ms", note))
    if report.whole.recipe:
        found.append(_memory("Whole memory", report.whole.memory_bytes, known, "arena + delegates"))
    if totals.cycles:
        label = "Largest graph" if report.whole.recipe else "Peak memory"
        found.append(_memory(label, totals.peak_bytes, known, "I/O + scratch + prefetch"))
        if totals.runtime_bytes and known is not None and not known.subsystem:
            found.append(_memory("Open runtime", totals.runtime_bytes, known, "arena + context + stack"))
    if totals.weight_bytes or totals.microcode_bytes:
        stored = stored_bytes(report)
        figure, unit = size(stored).split(" ")
        there = report.flash_bytes or (known.flash_bytes if known else 0)
        part = stored / there if there else -1.0
        note = f"{size(totals.weight_bytes)} weights, {size(totals.microcode_bytes)} microcode"
        note += f"; {part:.1%} of {size(there)}" if there else ""
        found.append(Tile("Flash", figure, unit, note, part))
    counts = node_counts(report)
    if counts.inner:
        what = "PyTorch nodes" if report.nodes else "LiteRT operators"
        graphs = f"{totals.neutron_graphs} graph{'' if totals.neutron_graphs == 1 else 's'}"
        note, part = f"{what}, {graphs}{counts.beside}", counts.delegated / counts.inner
        found.append(Tile("On the NPU", f"{counts.delegated}", f"of {counts.inner}", note, part))
    if totals.cycles and known:
        part = totals.macs / totals.cycles / known.macs_per_cycle
        note = f"{short(totals.macs)} MACs, {known.macs_per_cycle} per cycle at best"
        found.append(Tile("Array in use", f"{part:.0%}".rstrip("%"), "%", note, part))
    exact = [kernel.lsb for kernel in report.kernels if kernel.lsb is not None]
    if report.output_sqnr is not None:
        note = f"output against float; {max(exact):g} LSB from LiteRT" if exact else "output against float"
        worst = worst_part(report)
        note += f"; {worst}" if worst else ""
        found.append(Tile("Accuracy", f"{report.output_sqnr:.1f}", "dB SQNR", note))
    elif exact:
        others = sum(bool(kernel.golden) for kernel in report.kernels)
        beside = f"; {others} layer{'' if others == 1 else 's'} from another golden, see the layers" if others else ""
        found.append(Tile("Exactness", f"{max(exact):g}", "LSB", f"largest difference from LiteRT's reference{beside}"))
    return found


def _interval(times: Whole | Totals | Stock) -> str:
    high = times.milliseconds_high
    return f"{in_ms(times.milliseconds_low)} to {in_ms(high)} ms, " if high else ""


def _memory(label: str, count: int, known: targets.Target | None, otherwise: str) -> Tile:
    figure, unit = size(count).split(" ")
    if known is None or not known.sram_bytes:
        return Tile(label, figure, unit, otherwise)
    part = count / known.sram_bytes
    return Tile(label, figure, unit, f"{part:.1%} of {size(known.sram_bytes)} {known.ram}", part)


def _draw(box: Box, report: Report) -> dict[str, Any]:
    """Return what the page's script draws of a box, and the details it shows when the pointer is there."""
    if box.cycles:
        second = box.module or "×".join(map(str, box.shape))
    else:
        second = f"with {box.shared}" if box.shared else box.module or ("" if box.title == box.label else box.name)
    return {
        "title": box.title,
        "label": box.label,
        "second": second,
        "engine": box.engine,
        "graph": box.graph if box.engine == "npu" else -1,
        "inputs": box.inputs,
        "path": box.path,
        "cycles": box.cycles,
        "figure": short(box.cycles) if box.cycles else "",
        "lines": _details(box, report),
    }


def _details(box: Box, report: Report) -> list[tuple[str, str]]:
    total = report.totals.cycles or 1
    lines: list[tuple[str, str]] = [("operator", box.operator)]
    if box.module:
        lines.insert(0, ("module", box.module))
    if box.converts:
        lines.append(("before it", ", ".join(box.converts)))
    if box.constants:
        lines.append(("constants of", ", ".join(box.constants)))
    if box.engine == "npu":
        place = f"the NPU, graph {box.graph}" if report.totals.neutron_graphs > 1 else "the NPU"
        lines.append(("runs on", place))
        if box.kernels:
            lines.append(("kernel", " + ".join(box.kernels)))
            lines.append(("output", "×".join(map(str, box.shape))))
            lines.append(("cycles", f"{box.cycles:,} ({box.cycles / total:.1%})"))
        elif box.shared:
            lines.append(("kernel", f"done in the kernel of {box.shared}"))
        else:
            lines.append(("kernel", "none: it only changes how values are looked at"))
    else:
        lines.append(("runs on", _HOSTS.get(box.host, "the CPU")))
        if box.milliseconds:
            whole = report.whole.milliseconds
            lines.append(
                ("time", f"{box.milliseconds:.3f} ms of the CPU ({box.milliseconds / whole:.1%} of the program)")
            )
        lines.append(("why", box.reason or "no reason was recorded"))
        if box.hint:
            lines.append(("what to change", box.hint))
    if box.source:
        lines.append(("source", box.source))
    return lines


def _timeline(report: Report, kernels: dict[tuple[int, int], int]) -> dict[str, Any]:
    """Return the events of all graphs in sequence, as rows: lane, kernel (-1: a copy), start, end, first row, rows."""
    bases: dict[int, int] = {}
    base = 0
    for graph in dict.fromkeys(event.graph for event in report.events):
        bases[graph] = base
        base += max(event.end for event in report.events if event.graph == graph)
    events = [
        (
            int(event.lane != "array"),
            kernels.get((event.graph, event.node), -1) if event.lane == "array" else -1,
            event.start + bases[event.graph],
            event.end + bases[event.graph],
            event.first_row,
            event.rows,
        )
        for event in report.events
    ]
    known = targets.load(report.target) if report.target in targets.names() else None
    return {
        "events": sorted(events, key=lambda event: event[2]),
        "kernels": [(kernel.kernel, kernel.layer) for kernel in report.kernels],
        "end": base,
        "clock": known.clock_hz if known else 0,
        "graphs": list(bases.values()),
    }


def _row(kernel: Kernel, report: Report) -> dict[str, Any]:
    known = targets.load(report.target) if report.target in targets.names() else None
    use = kernel.macs / kernel.cycles / known.macs_per_cycle if known and kernel.cycles else 0.0
    low = kernel.sqnr is not None and kernel.sqnr < LOW_SQNR
    return {"kernel": kernel, "share": share(kernel, report), "use": use, "low": low}


@cache
def environment() -> Environment:
    """Return the template environment of pages."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("openneutron.report.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"size": size, "short": short, "count": lambda value: f"{value:,}"}
    return made


@cache
def asset(name: str) -> str:
    """Return a style sheet or script to be inlined in a page."""
    return (resources.files(__package__) / "templates" / name).read_text("utf-8")
