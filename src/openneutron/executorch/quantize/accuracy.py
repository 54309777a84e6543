"""Accuracy of a program: how far its outputs are from those of the original model on a few samples.

Each output is compared as a whole and in parts. An output that joins boxes in pixels with scores from 0 to 1 can be close to
float as a whole although every score is wrong.

Example:
    >>> compared = compare_outputs(wanted, found)
    >>> worst_sqnr(compared), compared[0].part
    (49.7, 'columns 4..8')
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import torch

from openneutron.executorch.quantize.measure.parts import Part, axis_parts, join_parts
from openneutron.executorch.upstream.names import tree_leaves, tree_map
from openneutron.report.accuracy import FULL, GOOD, LOST, warnings_of_outputs, worst_sqnr
from openneutron.report.model import OutputAccuracy

__all__ = ["FULL", "GOOD", "LOST", "SAMPLES", "compare_outputs", "output_sqnr", "warnings_of_outputs", "worst_sqnr"]

SAMPLES: Final = 16  # with 4 samples a network ending in a softmax measures 14 dB better than with 200
_MAX_SUM_ERROR: Final = 1e-3  # difference from 1; float rounding over a thousand classes stays far below

Results = Sequence[Any]


def output_sqnr(wanted: Results, found: Results) -> tuple[float, ...]:
    """Return the SQNR in dB of each float output over all samples; `wanted` and `found` hold one result per sample.

    Example:
        >>> output_sqnr([torch.ones(4)], [torch.ones(4)])
        (120.0,)
    """
    return tuple(_sqnr(a, b) for a, b in _concatenate_outputs(wanted, found) if a.is_floating_point() and a.numel())


def compare_outputs(
    wanted: Results, found: Results, labels: Sequence[torch.Tensor | None] = ()
) -> tuple[OutputAccuracy, ...]:
    """Return the accuracy of each output; `labels` number the pieces that an output is joined from, where known."""
    pairs = _concatenate_outputs(wanted, found)
    known = labels if len(labels) == len(pairs) else [None] * len(pairs)
    return tuple(
        _compare_output(f"output {at}", a, b, pieces)
        for at, ((a, b), pieces) in enumerate(zip(pairs, known, strict=True))
    )


def run_all(run: Callable[..., Any], batches: Sequence[tuple[torch.Tensor, ...]]) -> list[Any]:
    """Run the first few batches and return copies of the results: the next run may overwrite an output buffer."""
    with torch.no_grad():
        return [copy_tensors(run(*copy_tensors(batch))) for batch in batches[:SAMPLES]]


def copy_tensors(values: Any) -> Any:
    """Return the values with each tensor copied.

    Example:
        >>> model(*copy_tensors(batch))  # a model may change its inputs in place
    """
    return tree_map(lambda one: one.detach().clone() if isinstance(one, torch.Tensor) else one, values)


def _concatenate_outputs(wanted: Results, found: Results) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return, for each output, the concatenated tensors of all samples: those of the float model and those of the program."""
    sides = [
        [[one for one in tree_leaves(result) if isinstance(one, torch.Tensor)] for result in results]
        for results in (wanted, found)
    ]
    for right, ours in zip(*sides, strict=True):
        del ours[: max(0, len(ours) - len(right))]  # programs return changed inputs first
    stacked = [[torch.stack(rows) for rows in zip(*side, strict=True)] for side in sides]
    return [(a, b.reshape(a.shape)) for a, b in zip(*stacked, strict=True)]


def _compare_output(
    name: str, wanted: torch.Tensor, found: torch.Tensor, labels: torch.Tensor | None
) -> OutputAccuracy:
    if not wanted.numel():
        return OutputAccuracy(name, note="empty")
    if not wanted.is_floating_point():
        return OutputAccuracy(name, agreement=float((wanted == found).double().mean()), note="compared for equality")
    found = found.to(wanted.dtype)
    nan = found.isnan() & ~wanted.isnan()
    infinite = (wanted.isfinite() != found.isfinite()) & ~nan
    wrong = int(nan.sum()) + int(infinite.sum())
    if wrong:
        kind = "NaN, which" if bool(nan.any()) else "infinite in one and"
        what = f"{kind} the float model has numbers for" if bool(nan.any()) else f"{kind} finite in the other"
        return OutputAccuracy(name, -FULL if bool(nan.any()) else _sqnr(wanted, found), wrong=wrong, note=what)
    missing = int(wanted.isnan().sum())
    if missing:
        share = f"{missing} of {wanted.numel()} values are NaN in the float model itself"
        return OutputAccuracy(name, _sqnr(wanted, found) if missing < wanted.numel() else None, note=share)
    sqnr = _sqnr(wanted, found)
    if len(wanted) > 1 and bool((wanted == wanted[:1]).all()):
        same = sqnr == FULL
        told = "constant in the float model on all samples" + (", and equal here" if same else "")
        return OutputAccuracy(name, None if same else sqnr, note=told)
    part = _worst_part(wanted, found, labels)
    if part is None:
        return OutputAccuracy(name, sqnr)
    values = wanted[part.where.expand_as(wanted)]
    return OutputAccuracy(
        name, sqnr, part=part.name, part_sqnr=part.sqnr, part_low=float(values.min()), part_high=float(values.max()),
        step=_step(found),
    )  # fmt: skip


def _worst_part(wanted: torch.Tensor, found: torch.Tensor, labels: torch.Tensor | None) -> Part | None:
    """Return the part with the lowest SQNR: one of the joined pieces if known, else a channel or column."""
    signal, noise = (x.double().nan_to_num(0, 0, 0).square().sum(0) for x in (wanted, wanted - found))
    moves = (wanted != wanted[:1]).any(0) if len(wanted) > 1 else torch.ones_like(signal, dtype=torch.bool)
    parts: Iterable[Part] = ()
    if labels is not None:
        parts = join_parts(labels, signal.shape)
    elif not _are_shares(wanted):
        parts = axis_parts(signal, noise, LOST)
    measured = []
    for one in parts:
        if bool(moves[one.where].any()):  # skip parts that are constant in the float model
            figure = _decibels(float(signal[one.where].sum()), float(noise[one.where].sum()))
            measured.append(Part(one.name, one.where, figure))
    return min(measured, key=lambda one: one.sqnr, default=None)


def _are_shares(wanted: torch.Tensor) -> bool:
    """Return whether values add up to 1 along an axis, as after a softmax; absent classes then have values near 0."""
    axes = {wanted.dim() - 1, min(2, wanted.dim() - 1)}
    return any(bool((wanted.sum(axis) - 1).abs().max() < _MAX_SUM_ERROR) for axis in axes)


def _step(found: torch.Tensor) -> float:
    """Return the smallest distance between values of an output, 0 if it has only one value."""
    values = found.unique()
    return float(values.diff().min()) if len(values) > 1 else 0.0


def _sqnr(wanted: torch.Tensor, found: torch.Tensor) -> float:
    """Return the SQNR over elements that are finite in float; a NaN of the program in one of them gives no SQNR."""
    numbers = wanted.isfinite()
    a, b = wanted[numbers].double(), found[numbers].double()
    if bool(b.isnan().any()):
        return -FULL
    return _decibels(float(a.square().sum()), float((a - b).square().sum()))


def _decibels(signal: float, noise: float) -> float:
    if noise == 0:
        return FULL
    return max(min(10 * math.log10(signal / noise), FULL), -FULL) if signal else -FULL
