"""Tune: reach an accuracy, a perplexity or an SQNR at the fewest cycles, by choices of the quantizer alone.

It is the search of every compile (`quality.search`) with more trials and with two more steps: the layers whose noise costs most
get an observer of their own, and layers in 16 bits that the goal turns out not to need go back. Nothing is random, so the same
data give the same file.

Example:
    >>> found = tune(model, (image,), calibration=batches, samples=images, classes=labels, goal=Goal(drop=0.001))
    >>> Path("q.toml").write_text(to_toml(found.choices, found.rows()))
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import torch

from openneutron.errors import OptionError
from openneutron.executorch.capture.decoder_facts import decoder_constants
from openneutron.executorch.capture.export import Inputs, evaluation, export, one_thread
from openneutron.executorch.pipeline import build
from openneutron.executorch.quality.cycles import costs_of, cycles_ratio
from openneutron.executorch.quality.goals import Goal, Measure, measure_of
from openneutron.executorch.quality.search import Search, Trial
from openneutron.executorch.quality.trials import Trials
from openneutron.executorch.quality.wish import decoder_choices
from openneutron.executorch.quantize.choices import Choices, LayerChoice, to_table
from openneutron.executorch.quantize.measure.original import run_original
from openneutron.executorch.torch_lock import torch_lock
from openneutron.options import DEFAULT_TARGET
from openneutron.report.model import Report

__all__ = ["Goal", "Tuned", "token_samples", "tune"]

Progress = Callable[[str], None]

TRIALS: Final = 40  # a network of thirty layers needs about twenty
CYCLES: Final = 1.1  # of the network with 8 bits everywhere
_OBSERVED: Final = 3  # of the dearest layers, those that are tried with observers of their own


@dataclass(frozen=True)
class Tuned:
    """The choices, whether they reach the goal, and everything that was tried, in order."""

    choices: Choices
    measure: Measure
    floating: Measure
    reached: bool
    cycles: float
    trials: tuple[Trial, ...]
    layers: tuple[tuple[str, float], ...] = ()

    def rows(self) -> list[dict[str, Any]]:
        """The trials as tables of a quantization file."""
        return [_row(trial) for trial in self.trials]


def _row(trial: Trial) -> dict[str, Any]:
    row: dict[str, Any] = {"change": trial.change, "sqnr": round(trial.measure.sqnr, 2)}
    if trial.measure.accuracy >= 0:
        row["accuracy"] = round(trial.measure.accuracy, 4)
    if math.isfinite(trial.measure.loss):
        row["perplexity"] = round(math.exp(min(trial.measure.loss, 700.0)), 4)
    if trial.cycles:
        row["cycles"] = round(trial.cycles, 3)
    return {**row, "kept": trial.kept}


def token_samples(
    model: torch.nn.Module, example_inputs: Inputs, rows: Sequence[Sequence[int]], limit: int
) -> tuple[list[Inputs], list[int]]:
    """Return the calls that give sequences to a decoder, a token each, and the token that follows each call.

    At most `limit` calls; a sequence goes as far as the context reaches.
    """
    given = example_inputs
    facts = decoder_constants(export(model, given))
    if not facts or any(one.numel() != 1 for one in given):
        raise OptionError(
            "it is no decoder",
            hint="give a model that takes one token and its position, keeps a cache and returns logits",
        )
    most = facts["get_vocab_size"]
    samples, following = list[Inputs](), list[int]()
    for row in rows:
        for at, (token, after) in enumerate(itertools.pairwise(row[: facts["get_max_seq_len"] + 1])):
            if max(token, after) >= most:
                raise OptionError(
                    f"token {max(token, after)} is outside the vocabulary of {most:,}",
                    hint="use the tokenizer that the model was trained with",
                )
            samples.append(tuple(torch.full_like(one, value) for one, value in zip(given, (token, at), strict=True)))
            following.append(after)
            if len(samples) == limit:
                return samples, following
    return samples, following


@torch_lock()
def tune(
    model: torch.nn.Module,
    example_inputs: Inputs,
    *,
    calibration: Sequence[Inputs],
    samples: Sequence[Inputs],
    goal: Goal,
    classes: Sequence[int] | None = None,
    start: Choices | None = None,
    target: str = DEFAULT_TARGET,
    most_cycles: float = CYCLES,
    trials: int = TRIALS,
    workers: int = 1,
    progress: Progress | None = None,
) -> Tuned:
    """Search from `start`; with `target` "" nothing is compiled, and cycles are neither known nor bounded.

    For a perplexity the samples are the calls of sequences in their order, and the classes the tokens that follow.
    With several `workers` the next trials and the layers are measured at the same time, with the same result.
    """
    if goal.is_labelled and classes is None:
        raise OptionError("an accuracy needs labelled data", hint="give --data, or a goal in decibels: --sqnr")
    start = start or Choices()
    stage = progress or (lambda text: None)
    with evaluation(model), torch.no_grad(), one_thread():
        stage("running in float")
        wanted = run_original(model, samples)
        is_text = goal.perplexity is not None
        floating = measure_of(wanted, wanted, classes, with_loss=is_text)

        def judge(found: Sequence[Any]) -> Measure:
            return measure_of(found, wanted, classes, with_loss=is_text)

        exported = export(model, example_inputs)
        search = Search(
            Trials(exported, calibration, samples, wanted, judge), goal, floating, start, budget=trials,
            workers=workers, stage=stage,
        )  # fmt: skip
        prices = _Prices(model, example_inputs, calibration, target, search.best, stage)
        search.begin()
        if is_text and not search.over:
            _try_as_a_decoder(search, prices, most_cycles)
        search.try_free()
        _observe_layers(search, prices)
        if not search.over:
            search.widen(prices.costs(), most_cycles - 1 if target else float("inf"), prices.ratio if target else None)
        search.narrow_again()
        cycles = prices.ratio(search.best) if target else 0.0
        return Tuned(
            search.best, search.measure, floating, search.reached, cycles, tuple(search.done), tuple(search.layers)
        )


def _try_as_a_decoder(search: Search, prices: _Prices, most_cycles: float) -> None:
    """Try what a compile of a decoder begins with, where it takes no more than the allowed cycles."""
    candidate = decoder_choices(search.best, frozenset())
    cycles = prices.ratio(candidate) if prices.target else 0.0
    if cycles <= most_cycles:
        search.attempt("16 bits around products with weights", candidate, cycles)


def _observe_layers(search: Search, prices: _Prices) -> None:
    """Give the layers whose noise costs most observers of their own."""
    if search.over:
        return
    search.find_layers()
    for name, _ in search.layers[:_OBSERVED]:
        own = LayerChoice(name, observer="minmax"), LayerChoice(name, observer="percentile", percentile=99.9)
        texts = f"{name}: minmax", f"{name}: percentile {own[1].percentile}"
        search.try_all([(text, partial(search.with_layer, one)) for text, one in zip(texts, own, strict=True)])


@dataclass
class _Prices:
    """Cycles of choices, compiled for a target; without a target nothing is compiled."""

    model: torch.nn.Module
    example_inputs: Inputs
    calibration: Sequence[Inputs]
    target: str
    start: Choices
    stage: Progress
    known: dict[Choices, Report] = field(default_factory=dict)

    def ratio(self, choices: Choices) -> float:
        """Return the cycles against those with 8 bits everywhere."""
        return cycles_ratio(self._report(choices), self._report(self._narrow()))

    def costs(self) -> dict[str, float]:
        """Return what 16 bits add for each node, as a share of all cycles; nothing without a target."""
        return costs_of(self._report(self._narrow())) if self.target else {}

    def _narrow(self) -> Choices:
        return replace(self.start, layers=(), activations="int8", precision=())

    def _report(self, choices: Choices) -> Report:
        if choices not in self.known:
            self.stage(f"compiling for {self.target}")
            quick = self.calibration[:1]  # ranges do not change what is scheduled
            made = build(self.model, self.example_inputs, calibration=quick, target=self.target,
                         quantization=to_table(replace(choices, correct_bias=False, adaround=False)))  # fmt: skip
            self.known[choices] = made.report
        return self.known[choices]
