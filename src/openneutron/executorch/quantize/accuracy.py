"""Accuracy of a quantized network: how far its outputs are from the float network's, on a few calibration samples.

Calibration runs the float network anyway, so this costs one more run of the quantized one for each sample.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import torch
from torch.fx import GraphModule
from torch.utils._pytree import tree_leaves

SAMPLES: Final = 16  # four put a network that ends in a softmax 14 dB above what 200 samples give
GOOD: Final = 20.0  # dB; below, a tenth of the output is noise, and answers change
FULL: Final = 120.0  # dB that stand for "equal": more than any quantized result reaches


def output_sqnr(wanted: Sequence[Any], found: Sequence[Any]) -> tuple[float, ...]:
    """Decibels for each float output, over all samples; `wanted` and `found` have one result for each sample.

    Example:
        >>> output_sqnr([torch.ones(4)], [torch.ones(4)])
        (120.0,)
    """
    powers: dict[int, tuple[float, float]] = {}
    for reference, result in zip(wanted, found, strict=True):
        for at, (a, b) in enumerate(zip(tree_leaves(reference), tree_leaves(result), strict=True)):
            if isinstance(a, torch.Tensor) and a.is_floating_point():
                signal, noise = powers.get(at, (0.0, 0.0))
                difference = (a - b).double()
                powers[at] = signal + float(a.double().square().sum()), noise + float(difference.square().sum())
    return tuple(_decibels(*powers[at]) for at in sorted(powers))


def run_all(module: GraphModule, batches: Sequence[tuple[torch.Tensor, ...]]) -> list[Any]:
    """The module's results on the first few batches."""
    with torch.no_grad():
        return [module(*batch) for batch in batches[:SAMPLES]]


def _decibels(signal: float, noise: float) -> float:
    if noise == 0:
        return FULL
    return max(min(10 * math.log10(signal / noise), FULL), -FULL) if signal else -FULL
