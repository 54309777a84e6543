"""Goals of a search for accuracy, and the measures that are compared with them.

Example:
    >>> Goal(sqnr=25.0).is_reached(Measure(31.2), Measure(120.0))
    True
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import torch

from openneutron.errors import OptionError
from openneutron.executorch.quantize.accuracy import compare_outputs
from openneutron.executorch.upstream.names import tree_leaves
from openneutron.report.accuracy import lowest_sqnr, nearness
from openneutron.report.model import OutputAccuracy

MIN_BETTER_DB: Final = 0.05  # a smaller gain is within what other samples would change
MIN_BETTER_NATS: Final = 1e-3  # a thousandth of the perplexity
_PLACE: Final = re.compile(r"(?P<axis>channel|column)s? (?P<first>\d+)(\.\.(?P<last>\d+))?")
USEFUL_DB: Final = 4.0  # above the goal: other samples have 2 to 4 less, and more than that helps nobody
KEPT: Final = 0.99  # share of a metric that must survive quantization


@dataclass(frozen=True)
class Measure:
    """SQNR against float in decibels, and a share of right answers where there are some (else -1).

    `loss` is that of the right answers, in nats a sample; its exponential is the perplexity of a language model.
    It is infinite where nobody asked for it. `near` says how near all outputs together are to the goal, in decibels. Two
    sets of choices are compared by it: the lowest figure is often that of a part that is lost with both.
    """

    sqnr: float
    accuracy: float = -1.0
    loss: float = math.inf
    near: float | None = None

    @property
    def nearness(self) -> float:
        """`near`, or the SQNR where only that is known."""
        return self.sqnr if self.near is None else self.near


@dataclass(frozen=True)
class Goal:
    """What to reach: an SQNR in decibels, a share of right answers, or one that is `drop` below float's.

    Or a `perplexity`, in times that of float.
    """

    sqnr: float | None = None
    accuracy: float | None = None
    drop: float | None = None
    perplexity: float | None = None

    def __post_init__(self) -> None:
        if sum(one is not None for one in (self.sqnr, self.accuracy, self.drop, self.perplexity)) != 1:
            raise OptionError("tune needs one goal", hint="give --sqnr, --accuracy, --drop or --perplexity")

    @property
    def is_share(self) -> bool:
        """Whether the goal is a share of right answers."""
        return self.accuracy is not None or self.drop is not None

    @property
    def is_labelled(self) -> bool:
        """Whether the right answers must be known."""
        return self.sqnr is None

    def required_figure(self, floating: Measure) -> float:
        """Return the figure to reach."""
        if self.perplexity is not None:
            return -floating.loss - math.log(self.perplexity)
        if self.drop is not None:
            return floating.accuracy - self.drop
        return self.sqnr if self.sqnr is not None else self.accuracy  # type: ignore[return-value]

    def figure(self, measure: Measure) -> float:
        """Return the figure of a measure that the goal is about; more is better."""
        if self.perplexity is not None:
            return -measure.loss
        return measure.accuracy if self.is_share else measure.sqnr

    def is_reached(self, measure: Measure, floating: Measure) -> bool:
        """Return whether a measure reaches the goal."""
        # Shares are counts of samples: a drop of 0.001 of 1,000 is one of them, whatever the last bit says.
        return self.figure(measure) >= self.required_figure(floating) - 1e-9

    def is_better(self, measure: Measure, other: Measure) -> bool:
        """Return whether a measure is better than another by more than chance."""
        if self.is_share and measure.accuracy != other.accuracy:
            return measure.accuracy > other.accuracy
        if self.perplexity is not None:
            return measure.loss < other.loss - MIN_BETTER_NATS
        return measure.nearness > other.nearness + MIN_BETTER_DB


def measure_of(
    found: Sequence[Any], wanted: Sequence[Any], classes: Sequence[int] | None, *, with_loss: bool = False
) -> Measure:
    """Return the SQNR of the worst output, and the share of samples whose first output is largest at its class.

    Where all outputs are integers, decibels are those of the share of equal ones.
    """
    compared = compare_outputs(wanted, found)
    known = [one.sqnr for one in compared if one.sqnr is not None]
    sqnr = min(known) if known else lowest_sqnr(compared)
    if classes is None:
        return Measure(sqnr)
    pairs = [(first_output(one), wanted_class) for one, wanted_class in zip(found, classes, strict=True)]
    right = sum(int(one.argmax()) == wanted_class for one, wanted_class in pairs)
    if not with_loss:
        return Measure(sqnr, right / len(found))
    loss = sum(float(one.logsumexp(0) - one[wanted_class]) for one, wanted_class in pairs)
    return Measure(sqnr, right / len(found), loss / len(found))


def measure_parts(
    found: Sequence[Any], wanted: Sequence[Any], labels: Sequence[torch.Tensor | None], metric: str, decibels: float
) -> Measure:
    """Return the lowest SQNR of all parts; with a metric, the share of it that is kept in the worst output."""
    return summarize(compare_outputs(wanted, found, labels, metric=metric), metric, decibels)


def summarize(outputs: Sequence[OutputAccuracy], metric: str, decibels: float) -> Measure:
    """Return the measure of compared outputs.

    With a metric, an output without one counts as kept where it has the `decibels` of the goal.
    """
    asked = [one if one.separate else replace(one, part_sqnr=None) for one in outputs]
    lowest, near = lowest_sqnr(outputs), nearness(asked, decibels + USEFUL_DB)
    if metric == "sqnr":
        return Measure(lowest, near=near)
    kept = [one.kept if one.kept >= 0 else min(1.0, max(0.0, lowest_sqnr([one]) / decibels)) for one in outputs]
    return Measure(lowest, min(kept, default=1.0), near=near)


def part_labels(
    outputs: Sequence[OutputAccuracy], labels: Sequence[torch.Tensor | None], result: Any
) -> list[torch.Tensor | None]:
    """Return the labels of the pieces of outputs, and for a separate channel or column labels that set it apart.

    Example:
        >>> part_labels(report.outputs, labels, model(image))
    """
    values = [one for one in tree_leaves(result) if isinstance(one, torch.Tensor)]
    known = labels if len(labels) == len(values) else [None] * len(values)
    found: list[torch.Tensor | None] = []
    for one, value, pieces in zip(outputs, values, known, strict=True):
        place = _PLACE.fullmatch(one.part) if one.separate and pieces is None else None
        if place is None:
            found.append(pieces)
            continue
        axis = 1 if place["axis"] == "channel" else value.dim() - 1
        apart = torch.zeros(value.shape, dtype=torch.int32)
        first, last = int(place["first"]), int(place["last"] or place["first"])
        apart.narrow(axis, first, last - first + 1).fill_(1)
        found.append(apart)
    return found


def first_output(result: Any) -> torch.Tensor:
    """Return a network's first result as one row of doubles."""
    value = next(one for one in tree_leaves(result) if isinstance(one, torch.Tensor))
    return value.detach().double().reshape(-1)
