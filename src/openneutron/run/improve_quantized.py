"""Give operators of a float LiteRT model 16-bit activations where their noise costs most, within the cycles allowed.

The noise of groups of neighbouring operators is measured with 16 bits everywhere else, where noises add up. Groups that remove
most noise for their cycles are widened first. Nothing is random: the same data give the same bytes.

Example:
    >>> improved = improve_quantized(data, samples, made, result, goal=25.0, most_cycles=1.2, convert=convert_one)
    >>> improved.made.outputs, improved.notes
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from openneutron.report.accuracy import lowest_sqnr
from openneutron.report.model import Report
from openneutron.result import Result
from openneutron.run.quantize import QuantizedModel, quantize_float

_MOST_GROUPS: Final = 32  # each is quantized and run once
_BUILDS: Final = 3  # each with fewer cycles to spend than the one before
_SAFETY: Final = 0.8  # of the cycles that remain, after an estimate that was too low
_LEAST_STEP: Final = 0.1  # of the cycles to spend, after an estimate that was far too low
_LEAST_GAIN_DB: Final = 0.1  # a smaller one is within what other samples would change
_LEAST_SHARE: Final = 1e-4  # of all cycles: also the cheapest operator adds a conversion


@dataclass(frozen=True)
class Improved:
    """The better model with its conversion, and what was done, a line each."""

    made: QuantizedModel
    result: Result
    notes: tuple[str, ...]
    wide: tuple[str, ...] = ()


def improve_quantized(
    data: bytes,
    samples: Sequence[Any],
    made: QuantizedModel,
    result: Result,
    *,
    goal: float,
    most_cycles: float,
    convert: Callable[[bytes], Result],
    source: str = "<bytes>",
) -> Improved:
    """Return a model with 16-bit activations in some operators, or the given one where none within the cycles is better."""
    groups = _groups(result.report)
    measured = quantize_float(data, samples, source=source, groups=groups)
    costs = [_cost(result.report, group) for group in groups]
    best = Improved(made, result, ())
    spare = most_cycles - 1
    builds = 0
    while builds < _BUILDS:
        chosen = choose_groups(measured.noise, measured.floor, costs, target=10 ** (-goal / 10), most=spare)
        wide = tuple(name for at in chosen for name in groups[at])
        if not wide or wide == best.wide:
            break
        builds += 1
        again = quantize_float(data, samples, source=source, wide=wide)
        compiled = convert(again.model)
        ratio = compiled.report.totals.cycles / max(1, result.report.totals.cycles)
        fits = ratio <= most_cycles and _on_cpu(compiled.report) <= _on_cpu(result.report)
        if fits and lowest_sqnr(again.outputs) > lowest_sqnr(best.made.outputs) + _LEAST_GAIN_DB:
            best = Improved(again, compiled, (), wide)
        if fits:
            break
        spare *= min(1.0, max(_LEAST_STEP, (most_cycles - 1) / max(ratio - 1, 1e-9))) * _SAFETY
    return Improved(best.made, best.result, _notes(made, result, best, goal, most_cycles, builds), best.wide)


def choose_groups(
    noise: Sequence[Sequence[float]], floor: Sequence[float], costs: Sequence[float], *, target: float, most: float
) -> list[int]:
    """Return the groups that bring the noise of every output to `target`, those that remove most for their cycles first.

    Example:
        >>> choose_groups([[0.5], [0.1]], [0.0], [0.1, 0.1], target=0.2, most=0.2)
        [0]
    """
    own = [[max(0.0, one - least) for one, least in zip(row, floor, strict=True)] for row in noise]
    total = [sum(column) + least for column, least in zip(zip(*own, strict=True), floor, strict=True)]
    chosen: list[int] = []
    used = 0.0
    while any(one > target for one in total):
        best, gain = -1, 0.0
        for at, row in enumerate(own):
            if at in chosen or used + costs[at] > most:
                continue
            found = sum(
                min(part, max(0.0, one - target)) / one for part, one in zip(row, total, strict=True) if one > 0
            )
            if found / costs[at] > gain:
                best, gain = at, found / costs[at]
        if best < 0:
            break
        chosen.append(best)
        used += costs[best]
        total = [max(0.0, one - part) for one, part in zip(total, own[best], strict=True)]
    return chosen


def _groups(report: Report) -> list[list[str]]:
    """Return the names of neighbouring operators, in groups of as equal a size as their number allows."""
    names = [one.name for one in report.operators if one.converted and one.code not in ("QUANTIZE", "DEQUANTIZE")]
    size = -(-len(names) // _MOST_GROUPS) if names else 1
    return [names[at : at + size] for at in range(0, len(names), size)]


def _cost(report: Report, names: Sequence[str]) -> float:
    """Return what 16 bits add to the cycles for some operators, as a share of all: about as much as they take."""
    own = {one.index for one in report.operators if one.name in names}
    cycles = sum(kernel.cycles for kernel in report.kernels if own.intersection(kernel.operators))
    return max(_LEAST_SHARE, cycles / max(1, report.totals.cycles))


def _on_cpu(report: Report) -> int:
    return report.totals.operators_total - report.totals.operators_converted


def _notes(
    made: QuantizedModel, result: Result, best: Improved, goal: float, most_cycles: float, builds: int
) -> tuple[str, ...]:
    """Return what was done, what it cost and what it gained."""
    before, after = lowest_sqnr(made.outputs), lowest_sqnr(best.made.outputs)
    if not best.wide:
        return (
            f"quality: {before:.1f} dB is below the goal of {goal:g} dB; 16-bit activations in some operators were no better "
            f"within {most_cycles:g} × the cycles",
        )
    cycles = result.report.totals.cycles, best.result.report.totals.cycles
    some = ", ".join(best.wide[:3]) + (", …" if len(best.wide) > 3 else "")
    compiles = f"{builds} compile{'s' if builds > 1 else ''}"
    reached = "" if after >= goal else ", which is not reached"
    return (
        f"quality: chosen after {compiles}: 16-bit activations in {len(best.wide)} operators ({some})",
        f"quality: costs {cycles[1] / max(1, cycles[0]):.2f} × the cycles ({cycles[0]:,} to {cycles[1]:,})",
        f"quality: gains {before:.1f} dB to {after:.1f} dB in the worst part; the goal is {goal:g} dB{reached}",
    )
