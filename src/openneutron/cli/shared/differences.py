"""Comparing outputs step by step of their type: 0 LSB means the same bits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.errors import OptionError

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Difference:
    """How one output differs from its reference: elements that differ, and by how much at most (steps of the type)."""

    name: str
    elements: int
    differing: int
    largest: float

    @property
    def equal(self) -> bool:
        """True at 0 LSB."""
        return self.differing == 0


def compare(ours: Mapping[str, Array], reference: Mapping[str, Array], *, where: str) -> list[Difference]:
    """Compare outputs by position; an `OptionError` when they are not outputs of the same model.

    Example:
        >>> compare({"y": np.int8([1, 2])}, {"y": np.int8([1, 3])}, where="model.tflite")[0].largest
        1.0
    """
    if len(ours) != len(reference):
        raise OptionError(f"it has {len(reference)} outputs, the file that ran has {len(ours)}", where=where)
    found: list[Difference] = []
    for (name, a), b in zip(ours.items(), reference.values(), strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise OptionError(
                f"output {name!r} is {b.dtype} {list(b.shape)} there, {a.dtype} {list(a.shape)} here",
                where=where,
                hint="compare with the model this file was compiled from",
            )
        found.append(_difference(name, a, b))
    return found


def _difference(name: str, a: Array, b: Array) -> Difference:
    if a.size == 0:
        return Difference(name, 0, 0, 0.0)
    if a.dtype.kind in "fc":
        # Bits, not values: a NaN equals itself, and 0.0 differs from -0.0.
        bits = [np.ascontiguousarray(value).reshape(-1).view(np.uint8).reshape(value.size, -1) for value in (a, b)]
        count = int((bits[0] != bits[1]).any(axis=1).sum())
        with np.errstate(invalid="ignore", over="ignore"):
            distance = np.abs(a - b)
        largest = float(np.nanmax(distance)) if count and not np.isnan(distance).all() else 0.0
        return Difference(name, a.size, count, largest)
    distance = np.abs(a.astype(np.int64) - b.astype(np.int64))
    return Difference(name, a.size, int(np.count_nonzero(distance)), float(distance.max()))
