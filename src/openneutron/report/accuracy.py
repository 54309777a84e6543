"""Thresholds and sentences about accuracy, shared by all front ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from openneutron.report.model import OutputAccuracy

GOOD: Final = 20.0  # dB; below, a tenth of the output is noise, and predictions change
GOAL: Final = 25.0  # dB that every part shall have by default: below, classes and boxes begin to change
MARGIN: Final = (
    1.5  # dB above a goal to aim at: few samples set the ranges in which they are measured, and measure better
)
MANY_SAMPLES: Final = 64  # of calibration, from which on no margin is needed
LOST: Final = 10.0  # dB; below, a third of a part's values is noise, which makes them useless
AGREES: Final = 0.9  # share of equal integers; below, one in ten differs
# Metrics of what outputs mean, and what their figures are called.
METRIC_TITLES: Final = {
    "top1": "same class", "iou": "overlap of masks", "rank": "rank correlation", "boxes": "overlap of boxes",
}  # fmt: skip
_WHOLE_SHARE: Final = 0.75  # of an output's nearness to a goal; the rest is that of its worst part
FULL: Final = 120.0  # dB for equal values: more than any quantized result reaches


def worst_sqnr(outputs: Sequence[OutputAccuracy]) -> float | None:
    """Return the SQNR of the worst output, None if no output has one.

    Example:
        >>> worst_sqnr([OutputAccuracy("output 0", 40.0), OutputAccuracy("output 1", 35.0)])
        35.0
    """
    return min((one.sqnr for one in outputs if one.sqnr is not None), default=None)


def lowest_sqnr(outputs: Sequence[OutputAccuracy]) -> float:
    """Return the lowest SQNR of all outputs and separate parts; integers count with that of their share of equal ones.

    Example:
        >>> lowest_sqnr([OutputAccuracy("output 0", 40.0, part="columns 4..8", part_sqnr=3.1, separate=True)])
        3.1
    """
    figures = [one.sqnr for one in outputs if one.sqnr is not None]
    figures += [one.part_sqnr for one in outputs if one.part_sqnr is not None and one.separate]
    figures += [_agreement_sqnr(one.agreement) for one in outputs if one.agreement >= 0]
    return min(figures, default=FULL)


def nearness(outputs: Sequence[OutputAccuracy], goal: float) -> float:
    """Return how near outputs are to a goal, in decibels on average; what is above the goal counts as it.

    An output counts three times as much as its worst part, which may be another one after each change.

    Example:
        >>> nearness([OutputAccuracy("output 0", 40.0), OutputAccuracy("output 1", 15.0)], 25.0)
        20.0
    """
    figures = []
    for one in outputs:
        whole = min(goal, lowest_sqnr([replace(one, separate=False)]))
        part = whole if one.part_sqnr is None else min(goal, one.part_sqnr)
        figures.append(_WHOLE_SHARE * whole + (1 - _WHOLE_SHARE) * part)
    return sum(figures) / len(figures) if figures else goal


def _agreement_sqnr(agreement: float) -> float:
    return FULL if agreement >= 1 else -10 * math.log10(1 - agreement)


def warnings_of_outputs(outputs: Sequence[OutputAccuracy]) -> tuple[str, ...]:
    """Return warnings about outputs that a good overall figure would hide: lost parts, NaN, different integers."""
    found = []
    for one in outputs:
        if one.wrong:
            found.append(f"{one.name}: {one.wrong} values are {one.note}")
        if 0 <= one.agreement < AGREES:
            found.append(f"{one.name}: {one.agreement:.1%} of its integers are those of the float model")
        elif 0 <= one.agreement <= one.common < 1:
            found.append(
                f"{one.name}: {one.agreement:.1%} of its integers are those of the float model, no more than if all were "
                "its most frequent one"
            )
        if _hides_part(one):
            apart = f"are {one.step:.4g} apart" if one.step else "are all one"
            found.append(
                f"{one.part} of {one.name}: {one.part_sqnr:.1f} dB SQNR from float, where values lie between "
                f"{one.part_low:.4g} and {one.part_high:.4g} and those of the output {apart}; "
                "give parts of such different ranges as outputs of their own, or scale them to one range"
            )
    return tuple(found)


def _hides_part(one: OutputAccuracy) -> bool:
    """Return whether an output is good as a whole and one of its parts is not."""
    if one.sqnr is None or one.sqnr < GOOD or one.part_sqnr is None:
        return False
    return one.part_sqnr < (GOOD if one.separate else LOST)


def low_outputs(outputs: Sequence[OutputAccuracy], hint: str) -> tuple[str, ...]:
    """A sentence about each output below `GOOD` decibels.

    Example:
        >>> low_outputs([OutputAccuracy("output 1", 9.4)], "calibrate with more samples")
        ('output 1 is 9.4 dB SQNR from float, below 20 dB; calibrate with more samples',)
    """
    low = [one for one in outputs if one.sqnr is not None and one.sqnr < GOOD]
    return tuple(f"{one.name} is {one.sqnr:.1f} dB SQNR from float, below {GOOD:.0f} dB; {hint}" for one in low)


def missed_outputs(outputs: Sequence[OutputAccuracy], goal: float, hint: str) -> tuple[str, ...]:
    """Return a sentence about each output that is good and below a goal in decibels.

    Example:
        >>> missed_outputs([OutputAccuracy("output 1", 22.0)], 25.0, "give more samples")
        ('output 1: 22.0 dB, below the goal of quality, 25 dB; give more samples',)
    """
    missed = [one for one in outputs if one.sqnr is not None and GOOD <= one.sqnr < goal]
    return tuple(f"{one.name}: {one.sqnr:.1f} dB, below the goal of quality, {goal:g} dB; {hint}" for one in missed)
