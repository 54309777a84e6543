"""Two reports side by side on one page: changes between versions, options or chips, by figure and by layer.

Example:
    >>> Path("both.html").write_text(pair_page(before, after))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from openneutron.report.columns import WHICH
from openneutron.report.facts import node_counts, title
from openneutron.report.html.page import asset, environment
from openneutron.report.html.text import size
from openneutron.report.model import Kernel, Report

# Smaller relative changes are shown as none: cycles are an estimate.
_MIN_RELATIVE_CHANGE = 0.0005


@dataclass(frozen=True)
class Line:
    """One figure of both reports as text, and the change in percent with "good", "bad" or "" for it."""

    label: str
    texts: tuple[str, str]
    change: str = ""
    judged: str = ""


@dataclass(frozen=True)
class Layer:
    """One layer of both reports, matched by name; cycles are -1 in the one that lacks it."""

    name: str
    kernels: tuple[str, str]
    cycles: tuple[int, int]

    @property
    def difference(self) -> int:
        """Cycles of the second minus those of the first."""
        return max(self.cycles[1], 0) - max(self.cycles[0], 0)


def pair_page(first: Report, second: Report) -> str:
    """Return the page as text; like that of one report it opens offline."""
    layers = sorted(_layers(first, second), key=lambda layer: -abs(layer.difference))
    return (
        environment()
        .get_template("pair.html.j2")
        .render(
            reports=(first, second),
            titles=(title(first), title(second)),
            lines=lines(first, second),
            which=WHICH,
            layers=layers,
            most=max((abs(layer.difference) for layer in layers), default=0) or 1,
            style=asset("page.css"),
            script=pair_script(),
        )
    )


def pair_script() -> str:
    """Return the page's script exactly as its element holds it."""
    return "\n" + asset("table.js") + "\n"


def lines(first: Report, second: Report) -> list[Line]:
    """Return the figures that both have, the most important first."""
    found = [
        _figure("on the board: latency", first, second, lambda r: r.stock.milliseconds, lambda x: f"{x:.3f} ms"),
        _figure("on the board: memory", first, second, lambda r: r.stock.arena_bytes, size),
        _figure("latency, NPU", first, second, lambda r: r.totals.milliseconds, lambda x: f"{x:.3f} ms"),
        _figure("latency, whole program", first, second, lambda r: r.whole.milliseconds, lambda x: f"{x:.3f} ms"),
        _figure("cycles", first, second, lambda r: r.totals.cycles),
        _figure("peak memory", first, second, lambda r: r.totals.peak_bytes, size),
        _figure("whole memory", first, second, lambda r: r.whole.memory_bytes, size),
        _figure("weights", first, second, lambda r: r.totals.weight_bytes, size),
        _figure("microcode", first, second, lambda r: r.totals.microcode_bytes, size),
        _figure("MACs", first, second, lambda r: r.totals.macs),
    ]
    counts = node_counts(first), node_counts(second)
    on_npu = (f"{counts[0].delegated} of {counts[0].inner}", f"{counts[1].delegated} of {counts[1].inner}")
    found.append(Line("on the NPU", on_npu))
    if first.output_sqnr is not None and second.output_sqnr is not None:
        gain = second.output_sqnr - first.output_sqnr
        judged = "" if abs(gain) < 0.05 else "good" if gain > 0 else "bad"
        texts = (f"{first.output_sqnr:.1f} dB", f"{second.output_sqnr:.1f} dB")
        found.append(Line("SQNR against float", texts, f"{gain:+.1f} dB" if judged else "", judged))
    return [line for line in found if line is not None]


def _figure(
    label: str, first: Report, second: Report, value: Callable[[Report], float],
    text: Callable[[float], str] = lambda x: f"{x:,.0f}",
) -> Line | None:  # fmt: skip
    """Return a figure for which less is better; None if neither report has it."""
    a, b = value(first), value(second)
    if not a and not b:
        return None
    texts = (text(a) if a else "–", text(b) if b else "–")
    part = b / a - 1 if a and b else 0.0
    if abs(part) < _MIN_RELATIVE_CHANGE:
        return Line(label, texts)
    return Line(label, texts, f"{part:+.1%}", "good" if part < 0 else "bad")


def _layers(first: Report, second: Report) -> list[Layer]:
    sides = [_by_name(report) for report in (first, second)]
    names = dict.fromkeys([*sides[0], *sides[1]])
    return [
        Layer(
            name,
            (_kernels(sides[0].get(name, [])), _kernels(sides[1].get(name, []))),
            (_cycles(sides[0].get(name)), _cycles(sides[1].get(name))),
        )
        for name in names
    ]


def _by_name(report: Report) -> dict[str, list[Kernel]]:
    found: dict[str, list[Kernel]] = {}
    for kernel in report.kernels:
        found.setdefault(kernel.layer, []).append(kernel)
    return found


def _kernels(kernels: list[Kernel]) -> str:
    return " + ".join(dict.fromkeys(kernel.kernel for kernel in kernels)) or "–"


def _cycles(kernels: list[Kernel] | None) -> int:
    return -1 if kernels is None else sum(kernel.cycles for kernel in kernels)
