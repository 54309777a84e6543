"""Improve a quantized LiteRT model that is below its goal: methods that cost no cycles, then 16-bit activations.

Methods are tried one after the other. Then the noise of groups of neighbouring operators is measured with 16 bits everywhere
else, where noises add up; groups that remove most noise for their cycles are widened first. Nothing is random: the same data
give the same bytes.

Example:
    >>> improved = improve_quantized(data, samples, made, result, goal=25.0, most_cycles=1.2, convert=convert_one)
    >>> improved.made.outputs, improved.notes
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from openneutron.litert.passes.last_names import last_names
from openneutron.litert.read import read_model
from openneutron.report.accuracy import lowest_sqnr, nearness
from openneutron.report.model import Report
from openneutron.result import Result
from openneutron.run.quantize import NO_METHODS, QuantizedModel, quantize_float

_MOST_GROUPS: Final = 32  # each is quantized and run once; beside them those of the outputs
_BUILDS: Final = 4  # each with fewer cycles to spend than the one before, or without what the NPU has in 8 bits only
_SAFETY: Final = 0.9  # of the cycles that remain, after an estimate that was wrong
_LEAST_STEP: Final = 0.1  # of the cycles to spend, after an estimate that was far too low
_MOST_STEP: Final = 4.0  # times the cycles to spend, after one that was far too high
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
    """Return a more accurate model within the cycles, or the given one where none is."""

    def is_better(other: QuantizedModel, than: Improved) -> bool:
        return nearness(other.outputs, goal) > nearness(than.made.outputs, goal) + _LEAST_GAIN_DB

    best = Improved(made, result, ())
    free = quantize_float(data, samples, source=source, goal=goal)
    builds = 0
    if free.methods != NO_METHODS:
        builds += 1
        compiled = convert(free.model)
        if is_better(free, best) and _fits(compiled.report, result.report, most_cycles):
            best = Improved(free, compiled, ())
    if lowest_sqnr(best.made.outputs) < goal:
        best, more = _widen(data, samples, best, result.report, goal, most_cycles, convert, source, is_better)
        builds += more
    notes = _notes(made, result, best, goal, most_cycles, free.tried + builds)
    return replace(best, notes=notes)


def _widen(
    data: bytes,
    samples: Sequence[Any],
    start: Improved,
    first: Report,
    goal: float,
    most_cycles: float,
    convert: Callable[[bytes], Result],
    source: str,
    is_better: Callable[[QuantizedModel, Improved], bool],
) -> tuple[Improved, int]:
    """Return the model with 16 bits in some operators, or the given one, and how many were compiled."""
    methods, report = start.made.methods, start.result.report
    groups = _groups(report, last_names(read_model(start.made.model).main))
    measured = quantize_float(data, samples, source=source, groups=groups, methods=methods)
    low = [one.separate and lowest_sqnr([one]) < goal for one in start.made.outputs]
    used = [True] * len(low) + low  # of the noises: outputs, and parts that are below the goal
    noise = [[one for one, use in zip(row, used, strict=True) if use] for row in measured.noise]
    floor = [one for one, use in zip(measured.floor, used, strict=True) if use]
    costs = [_cost(report, group) for group in groups]
    best, builds, last = start, 0, ()  # type: tuple[Improved, int, tuple[str, ...]]
    narrow: set[str] = set()
    most = most_cycles - report.totals.cycles / max(1, first.totals.cycles)
    spare = most
    while builds < _BUILDS:
        chosen = choose_groups(noise, floor, costs, target=10 ** (-goal / 10), most=spare)
        wide = tuple(name for at in chosen for name in groups[at] if name not in narrow)
        if not wide or wide == last:
            break
        builds, last = builds + 1, wide
        again = quantize_float(data, samples, source=source, wide=wide, methods=methods)
        compiled = convert(again.model)
        used_cycles = compiled.report.totals.cycles / max(1, first.totals.cycles) - (most_cycles - most)
        if _fits(compiled.report, first, most_cycles) and is_better(again, best):
            best = Improved(again, compiled, (), wide)
        if used_cycles <= most and lowest_sqnr(again.outputs) >= goal:
            break
        narrow |= {one.name for one in compiled.report.operators if not one.converted} & set(wide)
        # The next estimate is as wrong as this one was.
        spare *= min(_MOST_STEP, max(_LEAST_STEP, most / max(used_cycles, 1e-9))) * _SAFETY
    return best, builds


def _fits(report: Report, first: Report, most_cycles: float) -> bool:
    """Return whether a program keeps to the cycles, with no more operators on the CPU."""
    return report.totals.cycles <= most_cycles * max(1, first.totals.cycles) and _on_cpu(report) <= _on_cpu(first)


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


def _groups(report: Report, last: set[str]) -> list[list[str]]:
    """Return the names of neighbouring operators, in groups of at most twice their share of the cycles.

    So there are at most as many as may be, and dear operators are chosen one by one. Those in `last` are a group of their own:
    16 bits there cost little and matter to outputs of mixed ranges.
    """
    names = [one.name for one in report.operators if one.converted and one.code not in ("QUANTIZE", "DEQUANTIZE")]
    inner = [name for name in names if name not in last]
    costs = [_cost(report, [name]) for name in inner]
    most = 2 * sum(costs) / _MOST_GROUPS
    groups: list[list[str]] = []
    filled = most
    for name, cost in zip(inner, costs, strict=True):
        if filled + cost > most:
            groups.append([])
            filled = 0.0
        groups[-1].append(name)
        filled += cost
    ends = [name for name in names if name in last]
    return groups + ([ends] if ends else [])


def _cost(report: Report, names: Sequence[str]) -> float:
    """Return what 16 bits add to the cycles for some operators, as a share of all: about as much as they take."""
    own = {one.index for one in report.operators if one.name in names}
    cycles = sum(kernel.cycles for kernel in report.kernels if own.intersection(kernel.operators))
    return max(_LEAST_SHARE, cycles / max(1, report.totals.cycles))


def _on_cpu(report: Report) -> int:
    return report.totals.operators_total - report.totals.operators_converted


def _notes(
    made: QuantizedModel, result: Result, best: Improved, goal: float, most_cycles: float, trials: int
) -> tuple[str, ...]:
    """Return what was done, what it cost and what it gained."""
    before, after = lowest_sqnr(made.outputs), lowest_sqnr(best.made.outputs)
    done = list(best.made.methods.words)
    if best.wide:
        some = ", ".join(best.wide[:3]) + (", …" if len(best.wide) > 3 else "")
        done.append(f"16-bit activations in {len(best.wide)} operators ({some})")
    if not done:
        return (
            f"quality: {before:.1f} dB is below the goal of {goal:g} dB; none of {trials} trials was better within "
            f"{most_cycles:g} × the cycles",
        )
    cycles = result.report.totals.cycles, best.result.report.totals.cycles
    reached = "" if after >= goal else ", which is not reached"
    return (
        f"quality: chosen after {trials} trials: {', '.join(done)}",
        f"quality: costs {cycles[1] / max(1, cycles[0]):.2f} × the cycles ({cycles[0]:,} to {cycles[1]:,})",
        f"quality: gains {before:.1f} dB to {after:.1f} dB in the worst part; the goal is {goal:g} dB{reached}",
    )
