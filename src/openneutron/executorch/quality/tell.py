"""What a search for better choices did, cost and gained, in words for a report.

Example:
    >>> describe(Choices(correct_bias=True), Choices())
    'correct_bias'
"""

from __future__ import annotations

from collections.abc import Sequence

from openneutron.executorch.quality.cycles import cycles_ratio
from openneutron.executorch.quality.goals import KEPT, Measure
from openneutron.executorch.quality.search import Trial
from openneutron.executorch.quality.wish import COARSE, FLOAT, Wish
from openneutron.executorch.quantize.choices import NAMES, Choices, to_toml
from openneutron.report.accuracy import lowest_sqnr
from openneutron.report.model import OutputAccuracy, Report


def describe(choices: Choices, start: Choices) -> str:
    """Return what some choices have that others do not, in words.

    Example:
        >>> describe(Choices(correct_bias=True, observer="minmax"), Choices())
        'observer=minmax, correct_bias'
    """
    words = []
    for name in NAMES:
        value = getattr(choices, name)
        if value != getattr(start, name) and name != "exclude":
            words.append(name if value is True else f"{name}={value}")
    if COARSE in start.layers and COARSE not in choices.layers:
        words.append("weights of linear layers per channel")
    wide = [one.name for one in choices.layers if one.activations == "int16" and one not in start.layers]
    if wide:
        some = ", ".join(wide[:3]) + (", …" if len(wide) > 3 else "")
        words.append(f"16-bit activations in {len(wide)} layers ({some})")
    return ", ".join(words)


def notes_of(
    wish: Wish, trials: Sequence[Trial], choices: Choices, start: Choices, first: Report, last: Report, problem: str
) -> tuple[str, ...]:
    """Return what was done, what it cost and what it gained, a line each."""
    aim = f"{wish.decibels:g} dB" if wish.metric == "sqnr" else f"{KEPT:.0%} of the answers"
    failed = [f"{one.change} ({one.problem})" for one in trials if one.problem] + ([problem] if problem else [])
    failures = (f"quality: failed and left out: {'; '.join(failed)}",) if failed else ()
    count = len(trials) - 1
    if choices == start:
        return (
            f"quality: {_figures(wish, first)} is below the goal of {aim}; none of {count} trials was better within "
            f"{wish.cycles:g} × the cycles",
            *failures,
        )
    ratio = cycles_ratio(last, first)
    reached = "" if wish.goal.is_reached(wish.measure(last.outputs), FLOAT) else ", which is not reached"
    return (
        f"quality: chosen after {count} trials: {describe(choices, start)}",
        f"quality: costs {ratio:.2f} × the cycles ({first.totals.cycles:,} to {last.totals.cycles:,})",
        f"quality: gains {_figures(wish, first)} to {_figures(wish, last)} in the worst part; the goal is {aim}{reached}",
        *failures,
    )


def warn_of_missed(wish: Wish, report: Report) -> tuple[str, ...]:
    """Warn of outputs that stay below the goal."""
    found = []
    for one in report.outputs:
        if wish.goal.is_reached(wish.measure([one]), FLOAT):
            continue
        lowest = lowest_sqnr([one])
        part = f"{one.part} of " if one.part_sqnr is not None and one.separate and one.part_sqnr <= lowest else ""
        kept = f", {one.kept:.1%} of its answers kept" if wish.metric != "sqnr" and one.kept >= 0 else ""
        found.append(
            f"{part}{one.name}: {_figure(one)}{kept}, below the goal of quality; raise --quality-cycles above "
            f"{wish.cycles:g}, give more calibration data, or train with quantization (docs/qat.md)"
        )
    return tuple(found)


def figure_of(wish: Wish, measure: Measure) -> str:
    """Format a measure of the search."""
    kept = f", {measure.accuracy:.1%} of the answers kept" if wish.metric != "sqnr" else ""
    return f"{measure.sqnr:.1f} dB{kept}"


def _figures(wish: Wish, report: Report) -> str:
    """Format what the worst output has; where a part of it has less, that too."""
    measure = wish.measure(report.outputs)
    kept = f", {measure.accuracy:.1%} of the answers kept" if measure.accuracy >= 0 else ""
    worst = min(report.outputs, key=lambda one: lowest_sqnr([one]), default=None)
    if worst is None:
        return f"{measure.sqnr:.1f} dB{kept}"
    if worst.agreement >= 0:
        return f"{worst.name} {_figure(worst)}{kept}"
    if worst.separate and worst.sqnr is not None and measure.sqnr < worst.sqnr:
        return f"{worst.sqnr:.1f} dB ({worst.part} {measure.sqnr:.1f} dB){kept}"
    return f"{measure.sqnr:.1f} dB{kept}"


def _figure(one: OutputAccuracy) -> str:
    """Format the lowest figure of an output: integers have a share of equal ones, which counts as decibels."""
    lowest = f"{lowest_sqnr([one]):.1f} dB"
    return lowest if one.agreement < 0 else f"{one.agreement:.1%} equal (counts as {lowest})"


def quantization_file(choices: Choices, source: str) -> str:
    """Return the quantization file that repeats some choices."""
    return to_toml(choices, head=f"openneutron compile {source}: found by --quality")
