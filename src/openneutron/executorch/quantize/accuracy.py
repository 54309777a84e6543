"""Accuracy of a program: how far its outputs are from those of the original model on a few samples.

Each output is compared as a whole and in parts. An output that joins boxes in pixels with scores from 0 to 1 can be close to
float as a whole although every score is wrong.

Example:
    >>> compared = compare_outputs(wanted, found)
    >>> worst_sqnr(compared), compared[0].part
    (49.7, 'columns 4..8')
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import torch

from openneutron.executorch.upstream.names import tree_leaves, tree_map
from openneutron.report.accuracy import FULL, GOOD, LOST, warnings_of_outputs, worst_sqnr
from openneutron.report.model import OutputAccuracy
from openneutron.run.compare_arrays import compare_arrays, decibels

__all__ = [
    "FULL",
    "GOOD",
    "LOST",
    "SAMPLES",
    "SEQUENCE",
    "compare_outputs",
    "output_sqnr",
    "warnings_of_outputs",
    "worst_sqnr",
]

SEQUENCE: Final = 64  # samples of a model with state: steps of one sequence, or positions of one text
SAMPLES: Final = 16  # with 4 samples a network ending in a softmax measures 14 dB better than with 200

Results = Sequence[Any]


def output_sqnr(wanted: Results, found: Results) -> tuple[float, ...]:
    """Return the SQNR in dB of each float output over all samples; `wanted` and `found` hold one result per sample.

    Example:
        >>> output_sqnr([torch.ones(4)], [torch.ones(4)])
        (120.0,)
    """
    return tuple(_sqnr(a, b) for a, b in _concatenate_outputs(wanted, found) if a.is_floating_point() and a.numel())


def compare_outputs(
    wanted: Results, found: Results, labels: Sequence[torch.Tensor | None] = (), *, metric: str = "auto"
) -> tuple[OutputAccuracy, ...]:
    """Return the accuracy of each output; `labels` number the pieces that an output is joined from, where known.

    `metric` is as in `compare_arrays`.
    """
    pairs = _concatenate_outputs(wanted, found)
    known = labels if len(labels) == len(pairs) else [None] * len(pairs)
    return tuple(
        _compare_output(f"output {at}", a, b, pieces, metric)
        for at, ((a, b), pieces) in enumerate(zip(pairs, known, strict=True))
    )


def run_all(run: Callable[..., Any], batches: Sequence[tuple[torch.Tensor, ...]], most: int = SAMPLES) -> list[Any]:
    """Run the first few batches and return copies of the results: the next run may overwrite an output buffer."""
    with torch.no_grad():
        return [copy_tensors(run(*copy_tensors(batch))) for batch in batches[:most]]


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
    name: str, wanted: torch.Tensor, found: torch.Tensor, labels: torch.Tensor | None, metric: str
) -> OutputAccuracy:
    return compare_arrays(
        name, _array(wanted), _array(found), None if labels is None else _array(labels), metric=metric
    )


def _array(tensor: torch.Tensor) -> Any:
    """Return a tensor's values as a NumPy array; NumPy has no bfloat16."""
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()


def _sqnr(wanted: torch.Tensor, found: torch.Tensor) -> float:
    """Return the SQNR over elements that are finite in float; a NaN of the program in one of them gives no SQNR."""
    numbers = wanted.isfinite()
    a, b = wanted[numbers].double(), found[numbers].double()
    if bool(b.isnan().any()):
        return -FULL
    return decibels(_array(a), _array(a - b))
