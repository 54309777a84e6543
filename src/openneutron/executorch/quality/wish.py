"""What a compile is asked for in accuracy, and the choices that it begins with.

Example:
    >>> Wish.of({"quality": 30.0}).decibels
    30.0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from torch.export import ExportedProgram

from openneutron.executorch.capture.decoder_facts import is_decoder
from openneutron.executorch.quality.goals import KEPT, Goal, Measure, summarize
from openneutron.executorch.quantize.choices import NAMES, Choices, LayerChoice
from openneutron.options import SCHEMA, Options
from openneutron.report.accuracy import GOAL, MARGIN
from openneutron.report.model import OutputAccuracy

_WEIGHTED: Final = "aten.linear.default"
COARSE: Final = LayerChoice(_WEIGHTED, per_channel=False)  # what the first compile begins with
FLOAT: Final = Measure(120.0, 1.0)


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
        return known and not self.aim().is_reached(self.measure(outputs), FLOAT)


_FIELDS: Final = {"quality": "quality", "cycles": "quality_cycles", "metric": "metric"}


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
