"""Compare one output of a program with the float model's by what it means: a class, a mask, scores, boxes.

Example:
    >>> metric = recognize_metric(wanted)
    >>> metric, measure_metric(metric, wanted, found)
    ('top1', 0.98)
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_MAX_SUM_ERROR: Final = 1e-3  # difference from 1; float rounding over a thousand classes stays far below
_MOST_CLASSES: Final = 2000  # a longer vector is rather an embedding or a signal
_MASK_SIDE: Final = 8  # a map with shorter sides is rather a small grid of features
_FEWEST_SCORES: Final = 8  # of fewer values an order says little


def recognize_metric(wanted: Array) -> str:
    """Return the metric that fits a float output, "" if none clearly does; the first axis counts samples."""
    shape = _core(wanted)
    if not np.isfinite(wanted).all():
        return ""
    if _class_axis(wanted) is not None:
        return "top1"
    inside = wanted.min() >= 0 and wanted.max() <= 1
    if len(shape) >= 2 and inside and min(sorted(shape)[-2:]) >= _MASK_SIDE and (wanted > 0.5).any():
        return "iou"
    if len(shape) == 1 and inside and shape[0] >= _FEWEST_SCORES:
        return "rank"
    if len(shape) == 2 and shape[1] == 4 and _are_corners(wanted.reshape(-1, 4)):
        return "boxes"
    if len(shape) == 1 and 2 <= shape[0] <= _MOST_CLASSES and not _is_unit(wanted):
        return "top1"
    return ""


def measure_metric(metric: str, wanted: Array, found: Array) -> float:
    """Return how much of the float model's answers is kept, from 0 to 1; -1 where the metric says nothing about the output."""
    wanted, found = wanted.astype(np.float64), np.nan_to_num(found.astype(np.float64).reshape(wanted.shape))
    if metric == "top1":
        axis = _class_axis(wanted)
        axis = wanted.ndim - 1 if axis is None else axis
        return -1.0 if wanted.shape[axis] < 2 else float((wanted.argmax(axis) == found.argmax(axis)).mean())
    if metric == "iou":
        right, ours = (one.reshape(len(one), -1) > 0.5 for one in (wanted, found))
        either = (right | ours).sum(axis=1)
        both = (right & ours).sum(axis=1)
        return float(np.where(either > 0, both / np.maximum(either, 1), 1.0).mean())
    if metric == "rank":
        return (
            -1.0
            if wanted[0].size < 2
            else float(np.mean([_rank_correlation(*pair) for pair in zip(wanted, found, strict=True)]))
        )
    return _overlap(wanted.reshape(-1, 4), found.reshape(-1, 4)) if wanted.shape[-1] == 4 else -1.0


def _core(wanted: Array) -> tuple[int, ...]:
    """Return the sizes of one sample's axes that are longer than 1."""
    return tuple(size for size in wanted.shape[1:] if size > 1)


def _class_axis(wanted: Array) -> int | None:
    """Return the axis along which values add up to 1, as after a softmax."""
    for axis in dict.fromkeys((wanted.ndim - 1, min(2, wanted.ndim - 1))):
        if axis and wanted.shape[axis] > 1 and bool((np.abs(wanted.sum(axis=axis) - 1)).max() < _MAX_SUM_ERROR):
            return axis
    return None


def _is_unit(wanted: Array) -> bool:
    """Return whether each sample is a vector of length 1, as normalized embeddings are."""
    lengths = np.square(wanted.reshape(len(wanted), -1)).sum(axis=1)
    return bool((np.abs(lengths - 1) < _MAX_SUM_ERROR).all())


def _are_corners(rows: Array) -> bool:
    """Return whether rows of four are left, top, right and bottom."""
    right_way = (rows[:, 2] > rows[:, 0]) & (rows[:, 3] > rows[:, 1])
    return bool(right_way.mean() > 0.99)


def _rank_correlation(wanted: Array, found: Array) -> float:
    """Return Spearman's rank correlation, at least 0; equal values share their mean rank."""
    ranks = [_ranks(one.reshape(-1)) for one in (wanted, found)]
    centred = [one - one.mean() for one in ranks]
    power = float(np.sqrt(np.square(centred[0]).sum() * np.square(centred[1]).sum()))
    return max(0.0, float((centred[0] * centred[1]).sum() / power)) if power else float(wanted.min() == wanted.max())


def _ranks(values: Array) -> Array:
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[which]


def _overlap(wanted: Array, found: Array) -> float:
    """Return the mean intersection over union of pairs of boxes."""
    low, high = np.maximum(wanted[:, :2], found[:, :2]), np.minimum(wanted[:, 2:], found[:, 2:])
    shared = np.clip(high - low, 0, None).prod(axis=1)
    areas = [np.clip(one[:, 2:] - one[:, :2], 0, None).prod(axis=1) for one in (wanted, found)]
    either = areas[0] + areas[1] - shared
    return float(np.where(either > 0, shared / np.maximum(either, 1e-30), 1.0).mean())
