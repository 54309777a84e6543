"""Compare one output of a program with the float model's: SQNR in decibels, agreement of classes, wrong values.

Example:
    >>> compare_arrays("scores", wanted, found).sqnr
    38.2
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.report.accuracy import FULL
from openneutron.report.model import OutputAccuracy

Array = npt.NDArray[Any]


def compare_arrays(name: str, wanted: Array, found: Array) -> OutputAccuracy:
    """Return the accuracy of one output; the first axis of both arrays counts samples, the last one columns."""
    if not wanted.size:
        return OutputAccuracy(name, note="empty")
    if wanted.dtype.kind in "iub":
        return OutputAccuracy(name, agreement=float((wanted == found).mean()), note="compared for equality")
    nan = np.isnan(found) & ~np.isnan(wanted)
    infinite = (np.isfinite(wanted) != np.isfinite(found)) & ~nan
    if nan.any():
        wrong = int(nan.sum() + infinite.sum())
        return OutputAccuracy(name, -FULL, wrong=wrong, note="NaN, which the float model has numbers for")
    right = np.where(np.isfinite(wanted) & ~infinite, wanted, 0).astype(np.float64)
    ours = np.where(np.isfinite(wanted) & ~infinite, found, 0).astype(np.float64)
    sqnr = decibels(right, right - ours)
    if infinite.any():
        return OutputAccuracy(name, sqnr, wrong=int(infinite.sum()), note="infinite in one and finite in the other")
    if len(wanted) > 1 and (wanted == wanted[:1]).all():
        same = sqnr == FULL
        note = "constant in the float model on all samples" + (", and equal here" if same else "")
        return OutputAccuracy(name, None if same else sqnr, note=note)
    return OutputAccuracy(name, sqnr)


def decibels(signal: Array, noise: Array) -> float:
    """Return the ratio of two powers in decibels, clipped to ± `FULL`."""
    power, error = float(np.square(signal).sum()), float(np.square(noise).sum())
    if error == 0:
        return FULL
    return max(min(10 * math.log10(power / error), FULL), -FULL) if power else -FULL
