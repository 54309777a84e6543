"""Goals of a search for accuracy, and the measures that are compared with them.

Example:
    >>> Goal(sqnr=25.0).reached(Measure(31.2), Measure(120.0))
    True
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch

from openneutron.errors import OptionError
from openneutron.executorch.quantize.accuracy import compare_outputs
from openneutron.executorch.upstream.names import tree_leaves
from openneutron.report.accuracy import lowest_sqnr
from openneutron.report.model import OutputAccuracy

MIN_BETTER_DB: Final = 0.05  # a smaller gain is within what other samples would change
_PLACE: Final = re.compile(r"(?P<axis>channel|column)s? (?P<first>\d+)(\.\.(?P<last>\d+))?")
KEPT: Final = 0.99  # share of a metric that must survive quantization


@dataclass(frozen=True)
class Measure:
    """SQNR against float in decibels, and a share of right answers where there are some (else -1)."""

    sqnr: float
    accuracy: float = -1.0


@dataclass(frozen=True)
class Goal:
    """What to reach: an SQNR in decibels, a share of right answers, or one that is `drop` below float's."""

    sqnr: float | None = None
    accuracy: float | None = None
    drop: float | None = None

    def __post_init__(self) -> None:
        if sum(one is not None for one in (self.sqnr, self.accuracy, self.drop)) != 1:
            raise OptionError("tune needs one goal", hint="give --sqnr, --accuracy or --drop")

    @property
    def is_share(self) -> bool:
        """Whether the goal is a share of right answers."""
        return self.sqnr is None

    def needed(self, floating: Measure) -> float:
        """Return the figure to reach."""
        if self.drop is not None:
            return floating.accuracy - self.drop
        return self.sqnr if self.sqnr is not None else self.accuracy  # type: ignore[return-value]

    def figure(self, measure: Measure) -> float:
        """Return the figure of a measure that the goal is about."""
        return measure.accuracy if self.is_share else measure.sqnr

    def reached(self, measure: Measure, floating: Measure) -> bool:
        """Return whether a measure reaches the goal."""
        # Shares are counts of samples: a drop of 0.001 of 1,000 is one of them, whatever the last bit says.
        return self.figure(measure) >= self.needed(floating) - 1e-9

    def is_better(self, measure: Measure, other: Measure) -> bool:
        """Return whether a measure is better than another by more than chance."""
        if self.is_share and measure.accuracy != other.accuracy:
            return measure.accuracy > other.accuracy
        return measure.sqnr > other.sqnr + MIN_BETTER_DB


def measure_of(found: Sequence[Any], wanted: Sequence[Any], classes: Sequence[int] | None) -> Measure:
    """Return the SQNR of the worst output, and the share of samples whose first output is largest at its class.

    Where all outputs are integers, decibels are those of the share of equal ones.
    """
    compared = compare_outputs(wanted, found)
    known = [one.sqnr for one in compared if one.sqnr is not None]
    sqnr = min(known) if known else lowest_sqnr(compared)
    if classes is None:
        return Measure(sqnr)
    right = sum(
        int(first_output(one).argmax()) == wanted_class for one, wanted_class in zip(found, classes, strict=True)
    )
    return Measure(sqnr, right / len(found))


def measure_parts(
    found: Sequence[Any], wanted: Sequence[Any], labels: Sequence[torch.Tensor | None], metric: str, decibels: float
) -> Measure:
    """Return the lowest SQNR of all parts; with a metric, the share of it that is kept in the worst output."""
    return summarize(compare_outputs(wanted, found, labels, metric=metric), metric, decibels)


def summarize(outputs: Sequence[OutputAccuracy], metric: str, decibels: float) -> Measure:
    """Return the measure of compared outputs.

    With a metric, an output without one counts as kept where it has the `decibels` of the goal.
    """
    lowest = lowest_sqnr(outputs)
    if metric == "sqnr":
        return Measure(lowest)
    kept = [one.kept if one.kept >= 0 else min(1.0, max(0.0, lowest_sqnr([one]) / decibels)) for one in outputs]
    return Measure(lowest, min(kept, default=1.0))


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
