"""Comparison of one layer with its golden value."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# Larger differences share the outermost bars of the histogram: small ones are rounding, large ones are errors.
FAR = 8


@dataclass(frozen=True)
class Layer:
    """One compared layer: `histogram` counts elements by their difference in LSB, clipped to ±`FAR`.

    `sqnr` is in decibels, infinity when nothing differs. A layer that only the compiler knows has no golden value:
    `compared` is False and the rest is zero. `exception` names what it is compared with, and why, where that is not
    LiteRT's reference kernel.
    """

    graph: int
    node: int
    kernel: str
    name: str
    shape: tuple[int, ...]
    compared: bool = True
    elements: int = 0
    differing: int = 0
    largest: float = 0.0
    sqnr: float = math.inf
    histogram: dict[int, int] = field(default_factory=dict)
    exception: str = ""

    @property
    def equal(self) -> bool:
        """True at 0 LSB, and if the layer cannot be compared."""
        return self.differing == 0


def over_frames(frames: Sequence[Layer]) -> Layer:
    """Combine one layer of several runs: all elements, the lowest SQNR.

    Example:
        >>> over_frames([first, second]).elements == first.elements + second.elements
        True
    """
    histogram: Counter[int] = Counter()
    for one in frames:
        histogram.update(one.histogram)
    return replace(
        frames[0],
        elements=sum(one.elements for one in frames),
        differing=sum(one.differing for one in frames),
        largest=max(one.largest for one in frames),
        sqnr=min(one.sqnr for one in frames),
        histogram=dict(histogram),
    )


def compare_layer(ours: Array, golden: Array, zero_point: int) -> dict[str, Any]:
    """Return the fields of a `Layer` that describe the difference; floats differ in value, not in LSB.

    Example:
        >>> compare_layer(np.int8([1, 2]), np.int8([1, 4]), 0)["largest"]
        2.0
    """
    kind = np.float64 if golden.dtype.kind == "f" else np.int64
    reference = golden.astype(kind).reshape(-1)
    difference = ours.astype(kind).reshape(-1) - reference
    differing = int(np.count_nonzero(difference))
    signal = float(np.square((reference - zero_point).astype(np.float64)).sum())
    noise = float(np.square(difference.astype(np.float64)).sum())
    histogram: dict[int, int] = {}
    if kind is np.int64:
        steps, counts = np.unique(np.clip(difference, -FAR, FAR), return_counts=True)
        histogram = {int(step): int(count) for step, count in zip(steps, counts, strict=True)}
    return {
        "elements": int(reference.size),
        "differing": differing,
        "largest": float(np.abs(difference).max()) if differing else 0.0,
        "sqnr": math.inf if noise == 0 else 10 * math.log10(signal / noise) if signal else -math.inf,
        "histogram": histogram,
    }
