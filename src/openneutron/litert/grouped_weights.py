"""4-bit weights with a scale for each group of inputs, as INT8 weights with a scale for each output channel.

A weight is q * r * s: q has 4 bits, r is the integer factor of its group, at most 16, and s the scale of its channel. q * r
fits INT8, so sums of products stay exact integers, and all kernels for INT8 weights compute them (docs/numerics.md,
4-bit weights).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Reals = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

GROUP_SIZES = (16, 32, 64, 128)
MAX_FACTOR = 16
LARGEST = 7  # quotient of weights that are rounded here: symmetric, and 7 * 16 fits INT8
_LARGEST_WEIGHT = 127
MOST_LEVELS = 15  # of 4-bit weights less a zero point of 4 bits
_SAMPLE = 8  # channels that decide whether weights have 4 bits already
_OFF_LEVEL = 0.06  # steps; a weight in bfloat16 may lie 15 / 2^8 beside its level
_TRIED = 4  # factors for a group that is rounded: from the one that clips nothing downwards
_CHUNK = 1 << 22  # weights at a time: more would take memory, fewer time


def quantize_groups(
    weights: Floats, group_size: int, least_scale: float = 2.0**-20
) -> tuple[npt.NDArray[np.int8], Floats]:
    """Return weights [channels, ..., inputs] as INT8, and the scale of each channel.

    With `group_size` 0 a channel is one group. A group whose weights have at most 4 bits already, because another tool
    quantized them, keeps its quotients. Every other group is rounded with the factor that gives the least squared error.

    Example:
        >>> quantize_groups(np.float32([[0.7, 0.5, 0.3, 0.1]]), group_size=2)[0]
        array([[112,  80,  49,  14]], dtype=int8)
    """
    found, scales = np.empty(weights.shape, np.int8), np.empty(len(weights), np.float32)
    for rows in _chunks(*weights.reshape(len(weights), -1).shape):
        part = weights[rows].astype(np.float32, copy=False)
        quotients, factors, scales[rows] = _quantize(_split(part, group_size), least_scale)
        found[rows] = _merge((quotients * factors[:, :, None]).astype(np.int8), part.shape)
    return found, scales


def join_groups(
    quotients: npt.NDArray[np.int8], scales: Floats, group_size: int, least_scale: float = 2.0**-20
) -> tuple[npt.NDArray[np.int8], Floats]:
    """Return quotients [channels, ..., inputs] of at most 15 with scales [channels, groups] as `quantize_groups` does.

    Example:
        >>> join_groups(np.int8([[7, -8, 1, 2]]), np.float32([[0.1, 0.05]]), group_size=2)[0]
        array([[  98, -112,    7,   14]], dtype=int8)
    """
    split = _split(quotients, group_size)
    levels = np.maximum(np.abs(split.astype(np.int16)).max(axis=2), 1).astype(np.int64)
    steps = np.abs(scales.astype(np.float64).reshape(levels.shape))
    channel_scales = _channel_scales(steps, levels, np.ones(levels.shape, np.bool_), least_scale)
    factors = _nearest_factors(steps, channel_scales, levels)
    weights = split * (factors * np.sign(scales.reshape(levels.shape)).astype(np.int64))[:, :, None]
    return _merge(weights.astype(np.int8), quotients.shape), channel_scales.astype(np.float32)


def find_group_size(weights: Floats) -> int | None:
    """Return the largest group size in which weights [channels, ..., inputs] have at most 4 bits; None for other weights.

    Looks at a few channels only.

    Example:
        >>> find_group_size(np.float32([[-3, 2, 1, 0] * 8]) * 0.25)
        0
    """
    sample = np.ascontiguousarray(weights[:: max(1, len(weights) // _SAMPLE)])
    for size in (0, *sorted(GROUP_SIZES, reverse=True)):
        groups = _split(sample, size)
        largest = np.abs(groups).max(axis=2).astype(np.float64)
        if ((_on_levels(groups, largest) > 0) | (largest == 0)).all():
            return size
    return None


def _chunks(channels: int, row: int) -> Iterator[slice]:
    step = max(1, _CHUNK // max(row, 1))
    yield from (slice(at, min(at + step, channels)) for at in range(0, channels, step))


def _split(weights: npt.NDArray[Any], group_size: int) -> npt.NDArray[Any]:
    """Return weights [channels, ..., inputs] as [channels, groups, inputs of a group], filled up with zeros."""
    if group_size == 0:
        return weights.reshape(len(weights), 1, -1)
    missing = -weights.shape[-1] % group_size
    if missing:
        weights = np.pad(weights, [(0, 0)] * (weights.ndim - 1) + [(0, missing)])
    return weights.reshape(len(weights), -1, group_size)


def _merge(groups: npt.NDArray[np.int8], shape: tuple[int, ...]) -> npt.NDArray[np.int8]:
    """Undo `_split`."""
    if groups.size == np.prod(shape):
        return groups.reshape(shape)
    return groups.reshape(*shape[:-1], -1)[..., : shape[-1]]


def _quantize(weights: Floats, least_scale: float, importance: Floats | None = None) -> tuple[Ints, Ints, Floats]:
    """Return quotients [channels, groups, inputs], factors [channels, groups] and scales [channels].

    `importance` [groups, inputs] multiplies the squared errors between which factors are chosen.
    """
    largest = np.abs(weights).max(axis=2).astype(np.float64)
    levels = _levels(weights, largest)
    known = levels > 0
    levels = np.where(known, levels, LARGEST)
    steps = largest / levels
    scales = _channel_scales(steps, levels, known, least_scale)
    factors = _nearest_factors(steps, scales, levels)
    quotients = np.rint(weights * _inverse(steps)[:, :, None].astype(np.float32))
    if not known.all():
        tried, rounded = _best_factors(weights, np.ceil(steps / scales[:, None]), scales, importance)
        factors = np.where(known, factors, tried)
        quotients = np.where(known[:, :, None], quotients, rounded)
    if factors.shape[1] == 1:  # one group needs no factor
        scales, factors = scales * factors[:, 0], np.ones_like(factors)
    return quotients.astype(np.int64), factors, scales.astype(np.float32)


def _inverse(values: Reals) -> Reals:
    """Return 1 / values, and 0 for 0."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)


def _levels(weights: Floats, largest: Reals) -> Ints:
    """Return, for each group whose weights are multiples of one step, how many steps its largest has; 0 for other groups."""
    found = np.zeros(largest.shape, np.int64)
    sample = slice(None, None, max(1, len(weights) // _SAMPLE))
    if not _on_levels(weights[sample], largest[sample]).any():
        return found  # nobody quantized these weights
    return _on_levels(weights, largest)


def _on_levels(weights: Floats, largest: Reals) -> Ints:
    found = np.zeros(largest.shape, np.int64)
    unit = weights * _inverse(largest)[:, :, None].astype(np.float32)
    for level in range(1, MOST_LEVELS + 1):
        steps = unit * np.float32(level)
        near = np.abs(steps - np.rint(steps)).max(axis=2) <= _OFF_LEVEL
        found = np.where((found == 0) & near & (largest > 0), level, found)
    return found


def _most_factors(levels: Ints) -> Ints:
    """Return the largest factor with which the largest quotient of a group still fits INT8."""
    return np.minimum(MAX_FACTOR, _LARGEST_WEIGHT // levels)


def _channel_scales(steps: Reals, levels: Ints, known: npt.NDArray[np.bool_], least_scale: float) -> Reals:
    """Return the scale of each channel, in float32, of which the `known` steps of its groups are nearly multiples."""
    most = _most_factors(levels)
    widest = (np.arange(len(steps)), (steps / most).argmax(axis=1))  # the group with the largest weight
    best, error = np.zeros(len(steps)), np.full(len(steps), np.inf)
    for less in range(MAX_FACTOR // 2):
        factors = np.maximum(most[widest] - less, most[widest] // 2 + 1)
        scales = _up_to_float32(np.maximum(steps[widest] / factors, least_scale))
        off = steps - scales[:, None] * _nearest_factors(steps, scales, levels)
        squares = np.where(known, (off * levels) ** 2, 0).sum(axis=1)
        best, error = np.where(squares < error, scales, best), np.minimum(squares, error)
    return best


def _up_to_float32(values: Reals) -> Reals:
    """Return float32 values that are not smaller, so that no factor exceeds its limit by rounding."""
    near = values.astype(np.float32)
    return np.where(near < values, np.nextafter(near, np.float32(np.inf)), near).astype(np.float64)


def _nearest_factors(steps: Reals, scales: Reals, levels: Ints) -> Ints:
    return np.clip(np.rint(steps / scales[:, None]), 1, _most_factors(levels)).astype(np.int64)


def _best_factors(weights: Floats, first: Reals, scales: Reals, importance: Floats | None) -> tuple[Ints, Floats]:
    """Return the factors with the least squared error, from `first` downwards, and the quotients that they give."""
    best = np.ones(first.shape, np.int64)
    error = np.full(first.shape, np.inf, np.float32)
    quotients = np.zeros_like(weights)
    for less in range(_TRIED):
        factors = np.clip(first - less, 1, MAX_FACTOR)
        steps = (factors * scales[:, None])[:, :, None].astype(np.float32)
        rounded = np.clip(np.rint(weights / steps), -LARGEST, LARGEST)
        off = weights - rounded * steps
        if importance is None:
            squares = np.einsum("cgi,cgi->cg", off, off)
        else:
            squares = np.einsum("cgi,cgi,gi->cg", off, off, importance)
        better = squares < error
        best, error = np.where(better, factors.astype(np.int64), best), np.minimum(squares, error)
        quotients = np.where(better[:, :, None], rounded, quotients)
    return best, quotients


def group_steps(weights: Floats, group_size: int, least_scale: float, importance: Floats | None = None) -> Reals:
    """Return the step of each group [channels, groups] that `quantize_groups` gives weights [channels, inputs].

    With `importance` [inputs], errors of some inputs count more than those of others.

    Example:
        >>> group_steps(np.float32([[0.7, -0.1] * 16]), 16, 2.0**-20).shape
        (1, 2)
    """
    shown = None if importance is None else _split(importance[None], group_size)[0]
    _, factors, scales = _quantize(_split(weights, group_size), least_scale, shown)
    return factors * scales.astype(np.float64)[:, None]
