"""Compare one output of a program with the float model's: as a whole, and in parts that the whole would hide.

Example:
    >>> found = compare_arrays("output 0", wanted, found, labels)
    >>> found.sqnr, found.part, found.part_sqnr
    (49.7, 'columns 4..8', 0.0)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from openneutron.report.accuracy import FULL, LOST, METRIC_TITLES
from openneutron.report.model import OutputAccuracy
from openneutron.run.compare_metrics import measure_metric, recognize_metric
from openneutron.run.output_parts import Part, axis_parts, flattened_parts, join_parts

Array = npt.NDArray[Any]

_MAX_SUM_ERROR: Final = 1e-3  # difference from 1; float rounding over a thousand classes stays far below

_APART: Final = 16.0  # times; one INT8 scale leaves a smaller range less than four bits
_SIGNAL: Final = 3  # dimensions of channels over time, or of values of many boxes, in either order
_MAP_SIDE: Final = 8  # shorter sides are rather channels
_FEATURES: Final = 32  # values of a vector; more are features, which have no meaning one by one


def compare_arrays(
    name: str, wanted: Array, found: Array, labels: Array | None = None, *, metric: str = "auto"
) -> OutputAccuracy:
    """Return the accuracy of one output; the first axis of both arrays counts samples.

    `labels` has the number of each element's piece, for an output joined from several. `metric` is one of `METRIC_TITLES`, or
    "auto" for the one that the float values suggest.
    """
    accuracy = _compare_values(name, wanted, found, labels)
    if accuracy.sqnr is None or accuracy.wrong:
        return accuracy
    chosen = metric if metric in METRIC_TITLES else recognize_metric(wanted)
    kept = measure_metric(chosen, wanted, found) if chosen else -1.0
    return replace(accuracy, metric=chosen, kept=kept) if kept >= 0 else accuracy


def _compare_values(name: str, wanted: Array, found: Array, labels: Array | None) -> OutputAccuracy:
    if not wanted.size:
        return OutputAccuracy(name, note="empty")
    if wanted.dtype.kind in "iub":
        _, counts = np.unique(wanted, return_counts=True)
        equal, common = float((wanted == found).mean()), float(counts.max() / wanted.size)
        return OutputAccuracy(name, agreement=equal, common=common, note="compared for equality")
    nan = np.isnan(found) & ~np.isnan(wanted)
    infinite = (np.isfinite(wanted) != np.isfinite(found)) & ~nan
    wrong = int(nan.sum()) + int((infinite & ~np.isnan(wanted)).sum())
    if nan.any():
        return OutputAccuracy(name, -FULL, wrong=wrong, note="NaN, which the float model has numbers for")
    both = np.isfinite(wanted) & ~infinite
    right, ours = (np.where(both, x, 0).astype(np.float64) for x in (wanted, found))
    sqnr = decibels(right, right - ours)
    if wrong:
        return OutputAccuracy(name, sqnr, wrong=wrong, note="infinite in one and finite in the other")
    missing = int(np.isnan(wanted).sum())
    if missing:
        share = f"{missing} of {wanted.size} values are NaN in the float model itself"
        return OutputAccuracy(name, sqnr if missing < wanted.size else None, note=share)
    if len(wanted) > 1 and (wanted == wanted[:1]).all():
        same = sqnr == FULL
        note = "constant in the float model on all samples" + (", and equal here" if same else "")
        return OutputAccuracy(name, None if same else sqnr, note=note)
    worst = _worst_part(right, ours, labels)
    if worst is None:
        return OutputAccuracy(name, sqnr)
    part, figure, joined = worst
    values = wanted[np.broadcast_to(part.where, wanted.shape)]
    return OutputAccuracy(
        name, sqnr, part=part.name, part_sqnr=figure, part_low=float(values.min()), part_high=float(values.max()),
        step=_step(found), separate=joined or (_has_meaning(wanted, part.name) and _is_small(values, wanted)),
    )  # fmt: skip


def decibels(signal: Array, noise: Array) -> float:
    """Return the ratio of two powers in decibels, clipped to ± `FULL`."""
    return _ratio(float(np.square(signal).sum()), float(np.square(noise).sum()))


def _ratio(power: float, error: float) -> float:
    if error == 0:
        return FULL
    return max(min(10 * math.log10(power / error), FULL), -FULL) if power else -FULL


def _worst_part(wanted: Array, found: Array, labels: Array | None) -> tuple[Part, float, bool] | None:
    """Return the part with the lowest SQNR, with that, and whether the model joins it or hides it behind a constant.

    It is a joined piece, or a channel or column if that loses more.
    """
    signal, noise = (np.square(x).sum(axis=0) for x in (wanted, wanted - found))
    moves = (wanted != wanted[:1]).any(axis=0) if len(wanted) > 1 else np.ones(signal.shape, dtype=np.bool_)

    def measure_parts(parts: Iterable[Part]) -> list[tuple[Part, float]]:
        """Measure the parts that are not constant in the float model."""
        return [
            (one, _ratio(float(signal[one.where].sum()), float(noise[one.where].sum())))
            for one in parts
            if moves[one.where].any()
        ]

    whole = [Part("all values", np.ones(signal.shape, dtype=np.bool_))]
    pieces = whole if labels is None else list(join_parts(labels, signal.shape))
    shares = _are_shares(wanted)
    flat = [] if shares else [one for one in measure_parts(pieces) if _hides_offset(wanted, found, one[0])]
    if flat:
        part, _ = flat[0]
        return part, _around_mean(wanted[:, part.where], found[:, part.where]), True
    worst = min(measure_parts(pieces) if labels is not None else [], key=lambda one: one[1], default=None)
    if shares or (worst is not None and worst[1] < LOST):
        return None if worst is None else (*worst, True)
    inside = min(measure_parts(axis_parts(signal, noise, LOST, len(wanted))), key=lambda one: one[1], default=None)
    if inside is None or inside[1] >= LOST:
        even = list(_flattened(wanted, found))
        if even:
            return *min(even, key=lambda one: one[1]), False
    if inside is not None and (worst is None or inside[1] < LOST):
        return *inside, False
    return None if worst is None else (*worst, True)


def _flattened(wanted: Array, found: Array) -> Iterable[tuple[Part, float]]:
    """Return small channels and columns of a meaning of their own that have nearly one value in place of many."""
    shape = wanted.shape[1:]
    if _FEATURES < max(shape, default=0) == math.prod(shape):
        return []
    return [one for one in flattened_parts(wanted, found, _APART, LOST) if _has_meaning(wanted, one[0].name)]


def _has_meaning(wanted: Array, part: str) -> bool:
    """Return whether a channel or column means something of its own: it is no row or column of a picture, or of many boxes."""
    shape = wanted.shape[1:]
    sides = sorted(shape)[-2:]
    if len(sides) < 2 or sides[0] < _MAP_SIDE:
        return True
    length = shape[1] if part.startswith("channel") else shape[-1]
    return bool(length <= sides[0] < sides[1] if len(shape) == _SIGNAL else length < sides[0])


def _is_small(values: Array, wanted: Array) -> bool:
    return float(np.abs(values).max()) * _APART < float(np.abs(wanted).max())


def _hides_offset(wanted: Array, found: Array, part: Part) -> bool:
    """Return whether a part looks good only because of a large constant in it: 100 ± 0.01 in steps of 0.4."""
    values, ours = wanted[:, part.where], found[:, part.where]
    return _around_mean(values, ours) < LOST <= decibels(values, values - ours)


def _around_mean(values: Array, ours: Array) -> float:
    return decibels(values - values.mean(), values - ours)


def _are_shares(wanted: Array) -> bool:
    """Return whether values add up to 1 along an axis, as after a softmax; absent classes then have values near 0."""
    axes = {wanted.ndim - 1, min(2, wanted.ndim - 1)}
    return any(bool((np.abs(wanted.sum(axis=axis) - 1)).max() < _MAX_SUM_ERROR) for axis in axes)


def _step(found: Array) -> float:
    """Return the smallest distance between values of an output, 0 if it has only one value."""
    values = np.unique(found)
    return float(np.diff(values).min()) if len(values) > 1 else 0.0
