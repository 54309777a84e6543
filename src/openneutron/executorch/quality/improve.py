"""Improve a compiled program whose measured accuracy is below its goal, and say in three lines what that did.

Example:
    >>> found = improve(first, wish, trials, chosen, build=build_with)
    >>> found.built.report.output_sqnr, found.notes
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, Protocol, TypeVar

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule

from openneutron.executorch.capture.decoder_facts import is_decoder
from openneutron.executorch.fx import operator_name
from openneutron.executorch.quality.goals import KEPT, USEFUL_DB, Goal, Measure, summarize
from openneutron.executorch.quality.search import FAILED, Search, Trial
from openneutron.executorch.quality.trials import Trials
from openneutron.executorch.quantize.choices import NAMES, Choices, LayerChoice, to_toml
from openneutron.executorch.quantize.passes._layers import OPERATORS
from openneutron.executorch.quantize.states import states_of
from openneutron.options import SCHEMA, Options
from openneutron.report.accuracy import GOAL, MARGIN, lowest_sqnr
from openneutron.report.model import OutputAccuracy, Report

_MOST_TRIALS: Final = 12
_FEWEST_TRIALS: Final = 5
_MOST_WORK: Final = 120_000  # operators that all trials run on calibration samples: minutes of a small network's
_BUILDS: Final = 3  # of programs with 16-bit layers, each with a better estimate of their cycles
_WIDE_TRIALS: Final = 3  # before each of these
_MOST_GROWTH: Final = 4.0  # of what an estimate may use after one that was too high
_WEIGHTED: Final = "aten.linear.default"
COARSE: Final = LayerChoice(_WEIGHTED, per_channel=False)  # what the first compile begins with
_MARGIN: Final = 0.9  # of the cycles that remain
_HELD_BACK: Final = 0.5  # of the allowed noise that comes from weights
_DEAR: Final = 0.01  # of the cycles, from which on a layer's finer weights are looked at
_MOST_DEAR: Final = 6  # layers
_MOST_LOSS: Final = 1.0  # dB on samples that set ranges, for a gain on others
_LEAST_FINER_GAIN: Final = 1.0  # dB that finer weights must gain for the cycles they cost


class HasReport(Protocol):
    """A compiled program."""

    @property
    def report(self) -> Report:
        """The program's report."""


T = TypeVar("T", bound=HasReport)


@dataclass(frozen=True)
class Wish:
    """What the user asked for: "auto", "plain" or decibels; times the cycles of 8 bits; what quality means."""

    quality: str | float = Options.quality
    cycles: float = Options.quality_cycles
    metric: str = Options.metric

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Wish:
        """Take the wish from compile options; a quantization file says all, so that "auto" does nothing beside it."""
        found = {name: given[option] for name, option in _FIELDS.items() if option in given}
        made = cls(**found)
        return cls("plain", made.cycles, made.metric) if given.get("quantization") and made.quality == "auto" else made

    @property
    def decibels(self) -> float:
        """The SQNR that every part of the outputs must have."""
        return GOAL if isinstance(self.quality, str) else self.quality

    @property
    def goal(self) -> Goal:
        """The goal as the user reads it."""
        return Goal(sqnr=self.decibels) if self.metric == "sqnr" else Goal(accuracy=KEPT)

    def aim(self, margin: float = MARGIN) -> Goal:
        """Return the goal of the search: calibration samples measure better than others will, so it leaves a margin."""
        return Goal(sqnr=self.decibels + margin) if self.metric == "sqnr" else Goal(accuracy=KEPT)

    def measure(self, outputs: Sequence[OutputAccuracy]) -> Measure:
        """Return the measure of compared outputs that the goal is about."""
        return summarize(outputs, self.metric, self.decibels)

    def is_open(self, outputs: Sequence[OutputAccuracy]) -> bool:
        """Return whether these outputs miss the goal of a search."""
        known = self.quality != "plain" and bool(outputs)
        return known and not self.aim().is_reached(self.measure(outputs), _FLOAT)


_FIELDS: Final = {"quality": "quality", "cycles": "quality_cycles", "metric": "metric"}
_FLOAT: Final = Measure(120.0, 1.0)


@dataclass(frozen=True)
class Improved(Generic[T]):
    """The better program, its choices, and the notes about the search."""

    built: T
    choices: Choices
    notes: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def improve(
    first: T,
    wish: Wish,
    trials: Trials,
    chosen: Choices,
    *,
    build: Callable[[Choices], T],
    module: GraphModule | None = None,
    fixed: frozenset[str] = frozenset(),
    labels: Sequence[torch.Tensor | None] = (),
    wide: bool = True,
    free: bool = True,
    stage: Callable[[str], None] = lambda text: None,
) -> Improved[T]:
    """Search for better choices than `chosen`, of which the options in `fixed` stay, and build the program with them.

    `module` is the quantized network of `first`. `wide` allows 16-bit activations, `free` trials that cost no
    cycles. The first program comes back where nothing is better within the cycles.
    """
    work = len(trials.exported.graph.nodes) * len(trials.calibration)
    budget = max(_FEWEST_TRIALS, min(_MOST_TRIALS, _MOST_WORK // work))
    module = trials.quantize(chosen) if module is None else module
    apart = None if states_of(module) else trials.hold_out()
    aim = wish.aim()
    start = wish.measure(first.report.outputs)
    if apart is not None:
        stage("quantizing without some samples")
        trials = apart
        module = trials.quantize(chosen)
    search = Search(trials, aim, _FLOAT, chosen, budget=budget, fixed=fixed, stage=stage, labels=labels)
    # Trials run PT2E modules, whose fused operators round more often than the program's: they compare with this one's.
    search.begin(min(start, trials.judge_module(module), key=wish.goal.figure))
    narrow_layers = chosen.activations == "int8" or any(one.activations == "int8" for one in chosen.layers)
    if narrow_layers:
        search.measure_floor(module)
    if free:
        search.goal = wish.aim(USEFUL_DB)
        search.try_free()
        search.goal = aim
    built, choices, problem, reached = first, chosen, "", search.done[0].measure
    costs, plain = costs_of(first.report), first.report
    if free and wide and not search.reached:
        plain = _with_coarse_weights(first.report, chosen, fixed, build, stage)
    finer = _with_finer_weights(search, build, plain, wish) if free else None
    if finer is not None:
        built, choices, reached = finer, search.best, search.measure
    finest, saved = (built, choices, reached), None
    fine, fine_measure = search.best, search.measure
    if free and wide and not search.reached:
        saved = _with_coarser_weights(search, build, built.report, plain)
        if saved is not None:
            built, choices, reached = saved, search.best, search.measure
    base = cycles_ratio(built.report, plain)
    limit = max(wish.cycles, base)
    most = limit / base - 1
    narrow, narrow_measure = search.best, search.measure
    wide = wide and narrow_layers and not search.reached
    for attempt in range(_BUILDS if wide else 1):
        if wide:
            search.best, search.measure = narrow, narrow_measure
            search.budget = len(search.done) + _WIDE_TRIALS
            search.widen(costs, most)
        if search.best in (chosen, choices):
            break
        stage("compiling with better choices")
        try:
            made = build(search.best)
        except Exception as error:  # what was tried on top of a program that compiles must not fail the compile
            problem = f"{type(error).__name__}: {error}"
            break
        ratio = cycles_ratio(made.report, plain)
        if ratio <= limit and _is_better(wish, made.report, built.report, search.measure, reached, apart is not None):
            built, choices, reached = made, search.best, search.measure
        if search.best == narrow or (ratio <= limit and search.reached) or attempt + 1 == _BUILDS:
            break
        added = max(ratio / base - 1, 1e-3)
        most *= min(_MOST_GROWTH, (limit / base - 1) / added) * _MARGIN  # as wrong as the last estimate was
    if built is first and narrow != chosen and search.best != narrow and not problem:
        made = build(narrow)
        if _is_better(wish, made.report, first.report, narrow_measure, reached, apart is not None):
            built, choices, reached = made, narrow, narrow_measure
    if saved is not None and built is saved:  # 16 bits had no use for the cycles that coarser weights gained
        built, choices, reached = finest
        if fine != choices and not problem:
            made = build(fine)
            if _is_better(wish, made.report, built.report, fine_measure, reached, apart is not None):
                built, choices, reached = made, fine, fine_measure
    notes = _notes(wish, search.done, choices, chosen, first.report, built.report, problem)
    warnings = _warn_of_missed(wish, built.report)
    if apart is not None:
        held = apart.held
        more = f"; {_figure_of(wish, reached)} with {held} calibration samples that set no ranges"
        last = 2 if choices != chosen else 0  # the line about figures
        notes = (*notes[:last], notes[last] + more, *notes[last + 1 :])
        if not warnings and not wish.goal.is_reached(reached, _FLOAT):
            warnings = (
                f"{_figure_of(wish, reached)} on {held} calibration samples while they set no ranges, below the goal of "
                f"quality: samples differ; give more calibration data, or raise --quality-cycles above {wish.cycles:g}",
            )
    return Improved(built, choices, notes, warnings)


def _is_better(wish: Wish, made: Report, built: Report, found: Measure, reached: Measure, held_out: bool) -> bool:
    """Return whether a program is better than the one before.

    Where samples were held out their figures decide: those of the programs are of samples that set their ranges.
    """
    ours, theirs = wish.measure(made.outputs), wish.measure(built.outputs)
    if not held_out:
        return wish.goal.is_better(ours, theirs)
    return wish.goal.is_better(found, reached) and ours.nearness > theirs.nearness - _MOST_LOSS


def _figure_of(wish: Wish, measure: Measure) -> str:
    """Format a measure of the search."""
    kept = f", {measure.accuracy:.1%} of the answers kept" if wish.metric != "sqnr" else ""
    return f"{measure.sqnr:.1f} dB{kept}"


def _with_coarse_weights(
    first: Report, chosen: Choices, fixed: frozenset[str], build: Callable[[Choices], T], stage: Callable[[str], None]
) -> Report:
    """Return the report of the cheapest program: scales per channel cost cycles, which count as paid for accuracy."""
    if not chosen.per_channel or "per_channel" in fixed:
        return first
    stage("compiling with one scale for all weights of a layer")
    with suppress(Exception):  # a comparison must not fail the compile
        other = build(replace(chosen, per_channel=False)).report
        return other if cycles_ratio(other, first) < 1 else first
    return first


def _with_finer_weights(search: Search, build: Callable[[Choices], T], plain: Report, wish: Wish) -> T | None:
    """Give linear layers a weight scale for each channel; returns the program, None where that is not worth its cycles.

    What it costs is known once the weights are coded: the search returns to the choices before if it is too much.
    """
    before, measure = search.best, search.measure
    if search.reached or COARSE not in before.layers or not search.trials.has("linear"):
        return None
    held_back = search.weights_noise() > _HELD_BACK  # 16-bit activations cannot reach the goal then
    found = search.attempt("weights of linear layers per channel", _finer(before))
    if held_back and found != FAILED:
        search.best, search.measure = _finer(before), found
    if search.best == before:
        return None
    if search.reached or found.nearness >= measure.nearness + _LEAST_FINER_GAIN or held_back:
        search.stage("compiling with better choices")
        with suppress(Exception):  # what was tried on top of a program that compiles must not fail the compile
            made = build(search.best)
            if cycles_ratio(made.report, plain) <= wish.cycles:
                return made
    search.best, search.measure = before, measure
    return None


def _with_coarser_weights(search: Search, build: Callable[[Choices], T], built: Report, plain: Report) -> T | None:
    """Give convolutions one weight scale where scales per channel cost cycles that 16-bit activations can use better.

    Weights of few outputs take most of a convolution's time, and with a scale for each channel their coded form is larger.
    Layers are tried one by one, the dearest first; each keeps one scale where the noise of all weights stays small.
    """
    ours, theirs = cycles_of_nodes(built), cycles_of_nodes(plain)
    extra = {name: (cycles - theirs.get(name, cycles)) / max(1, plain.totals.cycles) for name, cycles in ours.items()}
    dear = sorted((name for name, share in extra.items() if share > _DEAR), key=lambda name: -extra[name])
    layers = {one.name for one in search.trials.exported.graph.nodes if operator_name(one) in OPERATORS}
    before = search.best
    for name in [one for one in dear if one in layers][:_MOST_DEAR]:
        coarse = replace(search.best, layers=(*search.best.layers, LayerChoice(name, per_channel=False)))
        if search.floor_of(coarse) <= _HELD_BACK:
            search.best = coarse
    if search.best == before:
        return None
    search.stage("compiling with better choices")
    measure = search.measure
    with suppress(Exception):  # what was tried on top of a program that compiles must not fail the compile
        search.measure = FAILED
        if search.attempt("one weight scale where finer ones are dear", search.best) != FAILED:
            return build(search.best)
    search.best, search.measure = before, measure
    return None


def _finer(choices: Choices) -> Choices:
    return replace(choices, layers=tuple(one for one in choices.layers if one != COARSE))


def costs_of(report: Report) -> dict[str, float]:
    """Return by the name of each node what 16 bits add to the cycles, as a share of all.

    A kernel takes about twice its cycles with them.
    """
    return {name: cycles / max(1, report.totals.cycles) for name, cycles in cycles_of_nodes(report).items()}


def cycles_of_nodes(report: Report) -> dict[str, float]:
    """Return the cycles of the kernels that compute each node, by its name."""
    handles: dict[int, list[str]] = {}
    for node in report.nodes:
        if node.delegated and node.origin:
            handles.setdefault(node.debug_handle, []).append(node.origin)
    operators = {one.index: one for one in report.operators}
    found: dict[str, float] = {}
    for kernel in report.kernels:
        known = (operators[index] for index in kernel.operators if index in operators)
        names = {name for one in known for handle in one.debug_handles for name in handles.get(handle, ())}
        for name in names:
            found[name] = found.get(name, 0.0) + kernel.cycles
    return found


def cycles_ratio(report: Report, other: Report) -> float:
    """Return how many times the cycles of another program one takes; operators that went to the CPU count by time."""
    ratio = report.totals.cycles / max(1, other.totals.cycles)
    if report.whole.timed and other.whole.timed and other.whole.milliseconds:
        return max(ratio, report.whole.milliseconds / other.whole.milliseconds)
    return ratio if report.whole.cpu_operators <= other.whole.cpu_operators else float("inf")


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


def _notes(
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
    reached = "" if wish.goal.is_reached(wish.measure(last.outputs), _FLOAT) else ", which is not reached"
    return (
        f"quality: chosen after {count} trials: {describe(choices, start)}",
        f"quality: costs {ratio:.2f} × the cycles ({first.totals.cycles:,} to {last.totals.cycles:,})",
        f"quality: gains {_figures(wish, first)} to {_figures(wish, last)} in the worst part; the goal is {aim}{reached}",
        *failures,
    )


def _warn_of_missed(wish: Wish, report: Report) -> tuple[str, ...]:
    """Warn of outputs that stay below the goal."""
    found = []
    for one in report.outputs:
        if wish.goal.is_reached(wish.measure([one]), _FLOAT):
            continue
        lowest = lowest_sqnr([one])
        part = f"{one.part} of " if one.part_sqnr is not None and one.separate and one.part_sqnr <= lowest else ""
        kept = f", {one.kept:.1%} of its answers kept" if wish.metric != "sqnr" and one.kept >= 0 else ""
        found.append(
            f"{part}{one.name}: {_figure(one)}{kept}, below the goal of quality; raise --quality-cycles above "
            f"{wish.cycles:g}, give more calibration data, or train with quantization (docs/qat.md)"
        )
    return tuple(found)


def quantization_file(choices: Choices, source: str) -> str:
    """Return the quantization file that repeats some choices."""
    return to_toml(choices, head=f"openneutron compile {source}: found by --quality")


def first_choices(exported: ExportedProgram, chosen: Choices, wish: Wish, fixed: frozenset[str]) -> Choices:
    """Return the choices that a compile begins with.

    Ranges are fitted to their readers. Linear layers have one weight scale: with a scale for each channel their weights are
    larger in coded form, and these take most of their time. The search gives them scales per channel where accuracy needs that.

    A decoder has 16 bits everywhere but in products with weights. A residual stream grows from layer to layer, and the noise of
    a cache adds up over the context; with a token a call the weights take the time. 4-bit weights are rounded for the
    calibration data. What a user chose stays.
    """
    if wish.quality == "plain":
        return chosen
    chosen = replace(chosen, fit_ranges=True)
    if is_decoder(exported):
        return decoder_choices(chosen, fixed)
    if not chosen.per_channel or chosen.weights != "int8" or fixed & {"per_channel", "precision"}:
        return chosen
    return replace(chosen, layers=(COARSE, *chosen.layers))


def decoder_choices(chosen: Choices, fixed: frozenset[str]) -> Choices:
    """Return what a decoder begins with; options in `fixed` stay as they are."""
    if chosen.weights == "int4" and "adaround" not in fixed:
        chosen = replace(chosen, adaround=True)
    if fixed & {"activations", "precision"}:
        return chosen
    narrow = LayerChoice(_WEIGHTED, activations="int8")
    return replace(chosen, activations="int16", layers=(narrow, *chosen.layers))


def given_choices(options: Mapping[str, Any]) -> frozenset[str]:
    """Return the options about quantization that differ from their defaults: what a user chose stays."""
    return frozenset(name for name in NAMES if name in options and options[name] != SCHEMA[name].default)
