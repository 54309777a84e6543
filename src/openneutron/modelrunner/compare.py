"""Comparison of a board's outputs with expected ones: how many values differ, by how much at most, and where.

Example:
    >>> compare_outputs({"y": np.int8([1, 2])}, {"y": np.int8([1, 4])}, where="COM3")[0].worst
    2.0
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.errors import BoardError

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Comparison:
    """One output against its reference; `at` is the index of the largest difference, with both values there.

    `worst` counts steps of an integer type; for floats it is the distance of the values. `first_byte` is the offset of the
    first byte that differs, -1 when none does.
    """

    name: str
    elements: int
    differing: int
    worst: float = 0.0
    at: tuple[int, ...] = ()
    board: float = 0.0
    expected: float = 0.0
    first_byte: int = -1

    @property
    def equal(self) -> bool:
        """Whether all bytes are the same."""
        return self.first_byte < 0


def compare_outputs(board: Mapping[str, Array], expected: Mapping[str, Array], *, where: str) -> tuple[Comparison, ...]:
    """Compare outputs by position; a `BoardError` when the board's have other types or sizes."""
    if len(board) != len(expected):
        raise BoardError(
            f"the board has {len(board)} outputs, the reference {len(expected)}", where=where,
            hint="is the reference the same model?",
        )  # fmt: skip
    found = []
    for (name, ours), theirs in zip(board.items(), expected.values(), strict=True):
        if ours.dtype != theirs.dtype or ours.size != theirs.size:
            raise BoardError(
                f"output {name!r} is {ours.dtype} {list(ours.shape)} on the board, {theirs.dtype} {list(theirs.shape)} in the "
                "reference", where=where,
                hint="is the reference the same model? Open microcode is its own: leave --reference out",
            )  # fmt: skip
        found.append(_compare(name, ours.reshape(theirs.shape), theirs))
    return tuple(found)


def _compare(name: str, board: Array, expected: Array) -> Comparison:
    a, b = np.ascontiguousarray(board), np.ascontiguousarray(expected)
    raw = np.frombuffer(a.tobytes(), np.uint8) != np.frombuffer(b.tobytes(), np.uint8)
    if not raw.any():
        return Comparison(name, a.size, 0)
    first = int(raw.argmax())
    differing = int(raw.reshape(a.size, -1).any(axis=1).sum())
    wide = np.float64 if a.dtype.kind == "f" else np.int64
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(a.astype(wide) - b.astype(wide)).reshape(-1)
    if a.dtype.kind == "f":
        distance = np.where(np.isnan(distance), np.inf, distance)  # a NaN on one side is as wrong as can be
        distance[~raw.reshape(a.size, -1).any(axis=1)] = 0
    place = int(distance.argmax())
    at = tuple(int(one) for one in np.unravel_index(place, a.shape)) if a.shape else ()
    return Comparison(
        name,
        a.size,
        differing,
        float(distance[place]),
        at,
        float(a.reshape(-1)[place]),
        float(b.reshape(-1)[place]),
        first,
    )
