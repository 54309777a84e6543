"""Figures of accuracy: SQNR of each output and of its parts, and metrics of tasks.

They are computed here and not by `openneutron`, whose own figures they check.

Example:
    >>> parts(wanted, found)
    [Part(name='output 0', sqnr=48.2), Part(name='output 0 axis 1 [4..21]', sqnr=3.1)]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import numpy as np

APART = 16.0  # ranges further apart than this are parts of their own
MOST_PARTS = 8  # an axis that falls into more has no structure
MOST_LONG = 256  # of an axis that is looked at index by index
SIDE = 8  # a picture's shortest
SHARES = 1e-3  # how far float sums of probabilities are from 1 at most
FULL = 120.0  # decibels that stand for "equal"

Outputs = Sequence[Any]  # one sample's


@dataclass(frozen=True)
class Part:
    """An output, or some indices along one of its axes, and its SQNR in decibels."""

    name: str
    sqnr: float


def parts(wanted: Sequence[Outputs], found: Sequence[Outputs]) -> list[Part]:
    """Every float output over all samples, and the parts it falls into; those that never change are left out."""
    made = []
    for number, (a, b) in enumerate(zip(zip(*wanted, strict=True), zip(*found, strict=True), strict=True)):
        right, ours = np.stack(a).astype(np.float64), np.stack(b).astype(np.float64).reshape(np.stack(a).shape)
        if not np.issubdtype(np.asarray(a[0]).dtype, np.floating) or not right.size:
            continue
        if len(right) > 1 and (right == right[:1]).all():
            continue
        name = f"output {number}"
        made.append(Part(name, decibels(right, ours)))
        for axis, first, last in splits(right):
            cut = (slice(None),) * axis + (slice(first, last + 1),)
            if len(right) < 2 or (right[cut] != right[:1][cut]).any():
                made.append(Part(f"{name} axis {axis - 1} [{first}..{last}]", decibels(right[cut], ours[cut])))
    return made


def splits(stacked: Any) -> list[tuple[int, int, int]]:
    """Axis, first and last index of runs of small and of large ranges, of each axis that joins both.

    Small is less than the largest range of the axis by more than `APART`. Sides of pictures are no axes that join anything, and
    probabilities that add up to 1 are near 0 for classes that no sample has.
    """
    made = []
    for axis in sorted({2, stacked.ndim - 1} if stacked.ndim > 2 else {stacked.ndim - 1}):
        if axis == 0 or not 2 <= stacked.shape[axis] <= MOST_LONG:
            continue
        if _is_side(stacked.shape[1:], axis - 1) or np.abs(stacked.sum(axis=axis) - 1).max() < SHARES:
            continue
        ranges = np.abs(stacked).max(axis=tuple(at for at in range(stacked.ndim) if at != axis))
        small = ranges * APART < ranges.max()
        starts = [0, *(np.flatnonzero(small[1:] != small[:-1]) + 1).tolist()]
        if 2 <= len(starts) <= MOST_PARTS:
            made += [(axis, first, last - 1) for first, last in zip(starts, [*starts[1:], len(ranges)], strict=True)]
    return made


def _is_side(shape: Sequence[int], axis: int) -> bool:
    """Whether an axis is the height or width of a picture: one of the two longest of at least three, both long."""
    longest = sorted(shape)[-2:]
    return len(shape) > 3 and longest[0] >= SIDE and shape[axis] >= longest[0]


def decibels(wanted: Any, found: Any) -> float:
    """Signal to noise; a value that is not finite on one side only is as bad as can be."""
    finite = np.isfinite(wanted)
    if (finite != np.isfinite(found)).any():
        return -FULL
    signal, noise = (float(np.square(one[finite]).sum()) for one in (wanted, wanted - found))
    if noise == 0:
        return FULL
    return max(min(10 * math.log10(signal / noise), FULL), -FULL) if signal else -FULL


@dataclass(frozen=True)
class Metric:
    """A figure of a task from 0 to 1: what it is called, and what computes it from one sample's outputs and float's.

    With `labelled` it compares with the sample's label instead, float's own figure is one too, and half a point is what
    may be lost; else 1 %.
    """

    name: str
    score: Callable[[Outputs, Any], float]
    labelled: bool = False

    @property
    def allowed(self) -> float:
        """How much of it may be lost."""
        return 0.005 if self.labelled else 0.01

    def mean(self, found: Sequence[Outputs], references: Sequence[Any]) -> float:
        """The figure over all samples."""
        return float(np.mean([self.score(one, other) for one, other in zip(found, references, strict=True)]))


def same_class(output: int = 0) -> Metric:
    """How often the largest value is the same one."""
    return Metric("same class", lambda ours, right: float(np.argmax(ours[output]) == np.argmax(right[output])))


def right_class(output: int = 0) -> Metric:
    """How often the largest value is that of the label."""
    return Metric("right class", lambda ours, label: float(np.argmax(ours[output]) == label), labelled=True)


def same_decision(threshold: float, output: int = 0) -> Metric:
    """How often a value is on the same side of the threshold."""
    return Metric(
        f"same decision at {threshold:g}",
        lambda ours, right: float(np.mean((ours[output] > threshold) == (right[output] > threshold))),
    )


def mask_overlap(threshold: float, output: int = 0) -> Metric:
    """Intersection over union of what is above the threshold."""

    def overlap(ours: Outputs, right: Outputs) -> float:
        a, b = np.asarray(ours[output]) > threshold, np.asarray(right[output]) > threshold
        return float((a & b).sum() / (a | b).sum()) if (a | b).any() else 1.0

    return Metric(f"overlap of the mask at {threshold:g}", overlap)


def same_text(output: int = 0) -> Metric:
    """How much of a recognizer's text is the same: largest value of each step, repetitions and blanks (0) left out."""

    def read(outputs: Outputs) -> list[int]:
        steps = np.asarray(outputs[output]).reshape(-1, outputs[output].shape[-1]).argmax(-1).tolist()
        return [one for at, one in enumerate(steps) if one and (at == 0 or steps[at - 1] != one)]

    return Metric("same text", lambda ours, right: SequenceMatcher(None, read(ours), read(right), False).ratio())


def same_best_box(output: int = 0) -> Metric:
    """How far the best box overlaps: an output of [1, 4 + classes, boxes] with middle, width and height in pixels."""

    def best(outputs: Outputs) -> tuple[float, float, float, float]:
        rows = np.asarray(outputs[output])[0]
        x, y, wide, tall = rows[:4, int(rows[4:].max(0).argmax())]
        return x - wide / 2, y - tall / 2, x + wide / 2, y + tall / 2

    return Metric("overlap of the best box", lambda ours, right: overlap_of_boxes(best(ours), best(right)))


def cosine(output: int = 0) -> Metric:
    """The cosine between our embedding and float's: what embeddings are compared by."""

    def between(ours: Outputs, right: Outputs) -> float:
        a, b = (np.asarray(one[output], np.float64).ravel() for one in (ours, right))
        return float(a @ b / max(np.linalg.norm(a) * np.linalg.norm(b), np.finfo(np.float64).tiny))

    return Metric("cosine to float's", between)


def same_pitch(voiced: float = 0.5, cents: float = 50.0) -> Metric:
    """How many frames of (pitch in Hz, confidence) agree: voiced or not, and where voiced within a quarter tone."""

    def agree(ours: Outputs, right: Outputs) -> float:
        a, b = (np.asarray(one[1]).ravel() >= voiced for one in (ours, right))
        near = np.abs(1200 * np.log2(np.maximum(ours[0], 1e-3) / np.maximum(right[0], 1e-3))).ravel() <= cents
        return float(np.mean((a == b) & (near | ~b)))

    return Metric("same pitch", agree)


def same_face(threshold: float = 0.5, step: int = 4) -> Metric:
    """How far the best box overlaps, of (peaks, log sizes, offsets) on a grid; 1 where both sides find nothing."""

    def best(outputs: Outputs) -> tuple[float, float, float, float] | None:
        peaks, sizes, offsets = (np.asarray(one)[0] for one in outputs[:3])
        y, x = np.unravel_index(int(peaks[0].argmax()), peaks[0].shape)
        if peaks[0, y, x] < threshold:
            return None
        tall, wide = np.exp(sizes[:, y, x]) * step
        top, left = (y + offsets[0, y, x] + 0.5) * step - tall / 2, (x + offsets[1, y, x] + 0.5) * step - wide / 2
        return left, top, left + wide, top + tall

    def score(ours: Outputs, right: Outputs) -> float:
        a, b = best(ours), best(right)
        return float(a is b) if a is None or b is None else overlap_of_boxes(a, b)

    return Metric("overlap of the best face", score)


def overlap_of_boxes(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the intersection over union of two boxes of left, top, right and bottom.

    Example:
        >>> overlap_of_boxes((0, 0, 2, 2), (0, 0, 2, 1))
        0.5
    """
    wide, tall = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    shared = max(wide, 0.0) * max(tall, 0.0)
    whole = sum((one[2] - one[0]) * (one[3] - one[1]) for one in (a, b)) - shared
    return float(shared / whole) if whole > 0 else 0.0


def proposals(threshold: float, output: int = 1) -> Metric:
    """Intersection over union of the cells whose second probability is above the threshold: what goes to the next network."""
    cells = mask_overlap(threshold)
    return Metric(
        f"overlap of proposals at {threshold:g}",
        lambda ours, right: cells.score([ours[output][..., 1]], [right[output][..., 1]]),
    )
