"""Improve a compiled program whose measured accuracy is below its goal, and say in three lines what that did.

Choices that cost no cycles come first, then weight scales, then 16-bit activations. Trials measure PT2E modules; what they find
is compiled and kept if the program is better.

Example:
    >>> found = improve(first, wish, trials, chosen, build=build_with)
    >>> found.built.report.output_sqnr, found.notes
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Generic, Protocol, TypeVar

import torch
from torch.fx import GraphModule

from openneutron.executorch.fx import operator_name
from openneutron.executorch.quality.cycles import costs_of, cycles_of_nodes, cycles_ratio
from openneutron.executorch.quality.goals import USEFUL_DB, Measure
from openneutron.executorch.quality.search import FAILED, Search
from openneutron.executorch.quality.tell import figure_of, notes_of, warn_of_missed
from openneutron.executorch.quality.trials import Trials
from openneutron.executorch.quality.wish import COARSE, FLOAT, Wish
from openneutron.executorch.quantize.choices import Choices, LayerChoice
from openneutron.executorch.quantize.passes._layers import OPERATORS
from openneutron.executorch.quantize.states import states_of
from openneutron.report.model import Report

_MOST_TRIALS: Final = 12
_FEWEST_TRIALS: Final = 5
_MOST_WORK: Final = 120_000  # operators that all trials run on calibration samples: minutes of a small network's
_BUILDS: Final = 3  # of programs with 16-bit layers, each with a better estimate of their cycles
_WIDE_TRIALS: Final = 3  # before each of these
_MOST_GROWTH: Final = 4.0  # of what an estimate may use after one that was too high
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
class Improved(Generic[T]):
    """The better program, its choices, and the notes about the search."""

    built: T
    choices: Choices
    notes: tuple[str, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Candidate(Generic[T]):
    """A compiled program, the choices it was made with, and what a trial of these measured."""

    built: T
    choices: Choices
    measure: Measure


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
    if apart is not None:
        stage("quantizing without some samples")
        trials = apart
        module = trials.quantize(chosen)
    search = Search(trials, wish.aim(), FLOAT, chosen, budget=budget, fixed=fixed, stage=stage, labels=labels)
    # Trials run PT2E modules, whose fused operators round more often than the program's: they compare with this one's.
    start = min(wish.measure(first.report.outputs), trials.judge_module(module), key=wish.goal.figure)
    search.begin(start)
    narrow = chosen.activations == "int8" or any(one.activations == "int8" for one in chosen.layers)
    if narrow:
        search.measure_floor(module)
    state = _Improvement(first, chosen, wish, search, build, first.report, _Candidate(first, chosen, start))
    if free:
        state.try_free()
        if wide and not search.reached:
            state.find_cheapest()
        state.try_finer_weights()
    before, fine = state.best, (search.best, search.measure)
    saved = state.try_coarser_weights() if free and wide and not search.reached else None
    state.try_wide(wide=wide and narrow and not search.reached)
    if saved is not None and state.best is saved:  # 16 bits had no use for the cycles that coarser weights gained
        state.best = before
        if fine[0] != before.choices and not state.problem:
            state.offer(*fine)
    return state.result()


@dataclass
class _Improvement(Generic[T]):
    """The best program so far, and what finds better ones; `plain` is the report that cycles are compared with."""

    first: T
    chosen: Choices
    wish: Wish
    search: Search
    build: Callable[[Choices], T]
    plain: Report
    best: _Candidate[T]
    problem: str = ""  # of a program that could not be compiled

    def offer(self, choices: Choices, measure: Measure, limit: float = float("inf")) -> Report | None:
        """Compile choices, and keep the program if it is better within so many times the cycles; None where that fails."""
        self.search.stage("compiling with better choices")
        try:
            made = self.build(choices)
        except Exception as error:  # what was tried on top of a program that compiles must not fail the compile
            self.problem = f"{type(error).__name__}: {error}"
            return None
        candidate = _Candidate(made, choices, measure)
        if cycles_ratio(made.report, self.plain) <= limit and self._is_better(candidate):
            self.best = candidate
        return made.report

    def _is_better(self, other: _Candidate[T]) -> bool:
        """Return whether a program is better than the best so far.

        Where samples were held out their figures decide: those of the programs are of samples that set their ranges.
        """
        ours, theirs = (self.wish.measure(one.built.report.outputs) for one in (other, self.best))
        if not self.search.trials.held:
            return self.wish.goal.is_better(ours, theirs)
        better = self.wish.goal.is_better(other.measure, self.best.measure)
        return better and ours.nearness > theirs.nearness - _MOST_LOSS

    def try_free(self) -> None:
        """Try what costs no cycles; it aims above the goal."""
        aim = self.search.goal
        self.search.goal = self.wish.aim(USEFUL_DB)
        self.search.try_free()
        self.search.goal = aim

    def find_cheapest(self) -> None:
        """Compare cycles with those of one weight scale for a layer: finer ones count as paid for accuracy."""
        if not self.chosen.per_channel or "per_channel" in self.search.fixed:
            return
        self.search.stage("compiling with one scale for all weights of a layer")
        with suppress(Exception):  # a comparison must not fail the compile
            other = self.build(replace(self.chosen, per_channel=False)).report
            self.plain = other if cycles_ratio(other, self.plain) < 1 else self.plain

    def try_finer_weights(self) -> None:
        """Give linear layers a weight scale for each channel where that is worth its cycles.

        What it costs is known once the weights are coded: the search returns to the choices before if it is too much.
        """
        search, before, measure = self.search, self.search.best, self.search.measure
        if search.reached or COARSE not in before.layers or not search.trials.has("linear"):
            return
        finer = replace(before, layers=tuple(one for one in before.layers if one != COARSE))
        held_back = search.weights_noise() > _HELD_BACK  # 16-bit activations cannot reach the goal then
        found = search.attempt("weights of linear layers per channel", finer)
        if held_back and found != FAILED:
            search.best, search.measure = finer, found
        if search.best == before:
            return
        if search.reached or found.nearness >= measure.nearness + _LEAST_FINER_GAIN or held_back:
            search.stage("compiling with better choices")
            with suppress(Exception):  # what was tried on top of a program that compiles must not fail the compile
                made = self.build(search.best)
                if cycles_ratio(made.report, self.plain) <= self.wish.cycles:
                    self.best = _Candidate(made, search.best, search.measure)
                    return
        search.best, search.measure = before, measure

    def try_coarser_weights(self) -> _Candidate[T] | None:
        """Give convolutions one weight scale where those per channel cost cycles that 16-bit activations can use better.

        Weights of few outputs take most of a convolution's time, and with a scale for each channel their coded form is
        larger. Layers are tried one by one, the dearest first; each keeps one scale where the noise of all weights stays
        small. Returns the program, which 16 bits may use, None where no layer changed.
        """
        search = self.search
        ours, theirs = cycles_of_nodes(self.best.built.report), cycles_of_nodes(self.plain)
        whole = max(1, self.plain.totals.cycles)
        extra = {name: (cycles - theirs.get(name, cycles)) / whole for name, cycles in ours.items()}
        dear = sorted((name for name, share in extra.items() if share > _DEAR), key=lambda name: -extra[name])
        layers = {one.name for one in search.trials.exported.graph.nodes if operator_name(one) in OPERATORS}
        before, measure = search.best, search.measure
        for name in [one for one in dear if one in layers][:_MOST_DEAR]:
            coarse = replace(search.best, layers=(*search.best.layers, LayerChoice(name, per_channel=False)))
            if search.floor_of(coarse) <= _HELD_BACK:
                search.best = coarse
        if search.best == before:
            return None
        search.stage("compiling with better choices")
        with suppress(Exception):  # what was tried on top of a program that compiles must not fail the compile
            search.measure = FAILED
            if search.attempt("one weight scale where finer ones are dear", search.best) != FAILED:
                self.best = _Candidate(self.build(search.best), search.best, search.measure)
                return self.best
        search.best, search.measure = before, measure
        return None

    def try_wide(self, *, wide: bool) -> None:
        """Compile what trials found; if `wide`, with 16-bit activations too, as many as the cycles allow."""
        search, costs = self.search, costs_of(self.first.report)
        base = cycles_ratio(self.best.built.report, self.plain)
        limit = max(self.wish.cycles, base)
        most = limit / base - 1
        narrow, measure = search.best, search.measure
        for _ in range(_BUILDS if wide else 1):
            if wide:
                search.best, search.measure = narrow, measure
                search.budget = len(search.done) + _WIDE_TRIALS
                search.widen(costs, most)
            if search.best in (self.chosen, self.best.choices):
                break
            report = self.offer(search.best, search.measure, limit)
            ratio = cycles_ratio(report, self.plain) if report is not None else 0.0
            if report is None or search.best == narrow or (ratio <= limit and search.reached):
                break
            added = max(ratio / base - 1, 1e-3)
            most *= min(_MOST_GROWTH, (limit / base - 1) / added) * _MARGIN  # as wrong as the last estimate was
        if self.best.built is self.first and narrow not in (self.chosen, search.best) and not self.problem:
            self.offer(narrow, measure)

    def result(self) -> Improved[T]:
        """Return the best program with what the search has to say."""
        wish, best, held = self.wish, self.best, self.search.trials.held
        notes = notes_of(
            wish, self.search.done, best.choices, self.chosen, self.first.report, best.built.report, self.problem
        )
        warnings = warn_of_missed(wish, best.built.report)
        if held:
            figure = figure_of(wish, best.measure)
            line = 2 if best.choices != self.chosen else 0  # the one about figures
            more = f"{notes[line]}; {figure} with {held} calibration samples that set no ranges"
            notes = (*notes[:line], more, *notes[line + 1 :])
            if not warnings and not wish.goal.is_reached(best.measure, FLOAT):
                warnings = (
                    f"{figure} on {held} calibration samples while they set no ranges, below the goal of quality: samples "
                    f"differ; give more calibration data, or raise --quality-cycles above {wish.cycles:g}",
                )
        return Improved(best.built, best.choices, notes, warnings)
