"""Improve a quantized LiteRT model that is below its goal: methods that cost no cycles, then 16-bit activations.

Methods are tried one after the other. Then the noise of each quantized tensor is measured alone, and operators that remove most
noise for their cycles are widened first; what 16 bits cost each operator is the difference between two programs. Nothing is
random: the same data give the same bytes.

Example:
    >>> improved = improve_quantized(quantizer, made, result, goal=25.0, most_cycles=1.2, convert=convert_one)
    >>> improved.made.outputs, improved.notes
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from openneutron.choose_wide import choose_wide
from openneutron.litert.read import read_model
from openneutron.quantize_litert.quantize import FloatQuantizer, QuantizedModel
from openneutron.report.accuracy import lowest_sqnr, nearness
from openneutron.report.model import OutputAccuracy, Report
from openneutron.result import Result

_BUILDS: Final = 4  # each with fewer cycles to spend than the one before, or more where an estimate was too high
_SAFETY: Final = 0.95  # of the cycles that remain, after an estimate that was wrong
_LEAST_STEP: Final = 0.1  # of the cycles to spend, after an estimate that was far too low
_MOST_STEP: Final = 2.0  # times the cycles to spend, after one that was far too high
_LEAST_GAIN_DB: Final = 0.1  # a smaller one is within what other samples would change
_NEAR: Final = 0.98  # of the cycles that may be spent: another program would not be much better
_PLACE: Final = re.compile(r"(?P<axis>channel|column)s? (?P<first>\d+)(\.\.(?P<last>\d+))?")
_CONVERTING: Final = ("QUANTIZE", "DEQUANTIZE")


@dataclass(frozen=True)
class Improved:
    """The better model with its conversion, and what was done, a line each."""

    made: QuantizedModel
    result: Result
    notes: tuple[str, ...]
    wide: tuple[str, ...] = ()


def improve_quantized(
    quantizer: FloatQuantizer,
    made: QuantizedModel,
    result: Result,
    *,
    goal: float,
    most_cycles: float,
    convert: Callable[[bytes], Result],
) -> Improved:
    """Return a more accurate model within the cycles, or the given one where none is."""

    def is_better(other: QuantizedModel, than: Improved) -> bool:
        return nearness(other.outputs, goal) > nearness(than.made.outputs, goal) + _LEAST_GAIN_DB

    best = Improved(made, result, ())
    free = quantizer.search(goal)
    compiled = convert(free.model)
    builds = 1
    if is_better(free, best) and _fits(compiled.report, result.report, most_cycles):
        best = Improved(free, compiled, ())
    if lowest_sqnr(best.made.outputs) < goal:
        best, more = _widen(
            quantizer, best, Improved(free, compiled, ()), result.report, goal, most_cycles, convert, is_better
        )
        builds += more
    return replace(best, notes=_notes(made, result, best, goal, most_cycles, free.tried + builds))


def _widen(
    quantizer: FloatQuantizer, best: Improved, start: Improved, first: Report, goal: float, most_cycles: float,
    convert: Callable[[bytes], Result], is_better: Callable[[QuantizedModel, Improved], bool],
) -> tuple[Improved, int]:  # fmt: skip
    """Return the model with 16 bits in some operators, or the best so far, and how many were compiled."""
    methods, whole = start.made.methods, max(1, first.totals.cycles)
    names = [one.name for one in start.result.report.operators if one.converted and one.code not in _CONVERTING]
    everywhere = convert(quantizer.quantize(wide=names, methods=methods, compare=False).model)
    costs = _costs(start.result.report, everywhere.report, whole)
    parts = [one for at, output in enumerate(start.made.outputs) for one in _parts(at, output, start.made.model, goal)]
    tensors, noise = quantizer.noise(methods, parts)
    builds, last = 1, ()  # type: tuple[int, tuple[str, ...]]
    most = most_cycles - start.result.report.totals.cycles / whole
    spare, conversion = most, _conversion(everywhere.report, whole)
    while builds < _BUILDS:
        wide = tuple(
            choose_wide(
                tensors,
                noise.alone,
                noise.floor,
                target=10 ** (-goal / 10),
                costs=costs,
                conversion=conversion,
                most=spare,
            )
        )
        if not wide or wide == last:
            break
        builds, last = builds + 1, wide
        again = quantizer.quantize(wide=wide, methods=methods)
        compiled = convert(again.model)
        conversion = _conversion(compiled.report, whole) or conversion
        used = compiled.report.totals.cycles / whole - (most_cycles - most)
        if _fits(compiled.report, first, most_cycles) and is_better(again, best):
            best = Improved(again, compiled, (), wide)
        if used <= most and (lowest_sqnr(again.outputs) >= goal or used >= _NEAR * most):
            break
        # The next estimate is as wrong as this one was.
        spare *= min(_MOST_STEP, max(_LEAST_STEP, most / max(used, 1e-9))) * _SAFETY
    return best, builds


def _costs(narrow: Report, wide: Report, whole: int) -> dict[str, float]:
    """Return what 16 bits add to the cycles for each operator, as a share; none for those that have no 16-bit form."""
    before, after = _cycles(narrow), _cycles(wide)
    converted = {one.name for one in wide.operators if one.converted}
    return {name: (after[name] - before[name]) / whole for name in before if name in converted}


def _conversion(report: Report, whole: int) -> float:
    """Return what changing the width of an element costs in a program, as a share; 0 where it changes none."""
    changing = {one.index for one in report.operators if one.code == "QUANTIZE"}
    kernels = [one for one in report.kernels if changing.issuperset(one.operators)]
    elements = sum(math.prod(one.output_shape) for one in kernels)
    return sum(one.cycles for one in kernels) / elements / whole if elements else 0.0


def _cycles(report: Report) -> Counter[str]:
    """Return the cycles of each operator; one that is written out in several has its own name before a slash."""
    names = {one.index: one.name for one in report.operators}
    known = {name.replace(";", "/"): name for name in names.values()}
    found: Counter[str] = Counter(dict.fromkeys(names.values(), 0))
    for kernel in report.kernels:
        for at in kernel.operators:
            before, _, _ = names[at].rpartition("/")
            found[known.get(before, names[at])] += kernel.cycles // len(kernel.operators)
    return found


def _parts(number: int, output: OutputAccuracy, model: bytes, goal: float) -> list[tuple[int, int, int, int]]:
    """Return the place of an output's worst part if it counts as an output of its own and is below the goal."""
    place = _PLACE.fullmatch(output.part) if output.separate and (output.part_sqnr or 0) < goal else None
    if place is None:
        return []
    graph = read_model(model).main
    axis = 1 if place["axis"] == "channel" else len(graph.tensors[graph.outputs[number]].shape) - 1
    first = int(place["first"])
    return [(number, axis, first, int(place["last"] or first))]


def _fits(report: Report, first: Report, most_cycles: float) -> bool:
    """Return whether a program keeps to the cycles, with no more operators on the CPU."""
    return report.totals.cycles <= most_cycles * max(1, first.totals.cycles) and _on_cpu(report) <= _on_cpu(first)


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
