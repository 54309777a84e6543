"""Parts of an output, measured on their own: pieces that a model joined, channels, columns.

Example:
    >>> [part.name for part in join_parts(np.array([0, 0, 1]), (3,))]
    ['columns 0..1', 'column 2']
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# Longer axes are examined index by index only if each index has enough values: of a few, one is small by chance.
_LONG: Final = 256
_ENOUGH_VALUES: Final = 16


@dataclass(frozen=True)
class Part:
    """A subset of an output's elements and its name."""

    name: str
    where: Array


def join_parts(labels: Array, shape: Sequence[int]) -> Iterator[Part]:
    """Yield the pieces of an output, named by their position; `labels` has the number of each element's piece."""
    for number in np.unique(labels).tolist():
        where = (labels == number).reshape(shape)
        yield Part(_place(where), where)


def _place(where: Array) -> str:
    """Describe a piece's position: a range of one axis, or its number of elements if it is scattered."""
    for axis in reversed(range(where.ndim)):
        rows = np.asarray(where.all(axis=_others(axis, where.ndim)))
        if (where == _along(rows, axis, where.ndim)).all():
            (at,) = rows.nonzero()
            if len(at) == at[-1] - at[0] + 1:
                return _range(int(at[0]), int(at[-1]), axis, where.ndim)
    return f"{int(where.sum())} elements"


def _others(axis: int, dims: int) -> tuple[int, ...]:
    return tuple(at for at in range(dims) if at != axis)


def _along(rows: Array, axis: int, dims: int) -> Array:
    return rows.reshape([-1 if at == axis else 1 for at in range(dims)])


def _range(first: int, last: int, axis: int, dims: int) -> str:
    name = "column" if axis == dims - 1 else "channel" if axis == 1 else f"axis {axis} index"
    if first == last:
        return f"{name} {first}"
    return f"{'axis ' + str(axis) + ' indices' if name.startswith('axis') else name + 's'} {first}..{last}"


def axis_parts(signal: Array, noise: Array, lost: float, samples: int = 1) -> Iterator[Part]:
    """Yield channels and columns: neighbours below `lost` dB as one part, and the worst one of each axis.

    `signal` and `noise` are powers, summed over `samples`.
    """
    for axis in _axes(signal.shape, samples):
        power, error = (x.sum(axis=_others(axis, signal.ndim)) for x in (signal, noise))
        ratio = power / np.maximum(error, 1e-300)
        for first, last in _runs(ratio < 10 ** (lost / 10)) or [(int(ratio.argmin()),) * 2]:
            yield _axis_part(first, last, axis, signal.shape)


def flattened_parts(wanted: Array, found: Array, times: float, lost: float) -> Iterator[tuple[Part, float]]:
    """Yield neighbouring channels and columns whose changes around their means are below `lost` dB, with that figure.

    Only those that are `times` smaller than the largest value are looked at; the first axis of both arrays counts samples.
    """
    shape = wanted.shape[1:]
    for axis in _axes(shape, len(wanted)):
        others = (0, *(at + 1 for at in _others(axis, len(shape))))
        sizes = np.abs(wanted).max(axis=others)
        power = np.square(wanted - wanted.mean(axis=others, keepdims=True)).sum(axis=others)
        error = np.square(wanted - found).sum(axis=others)
        small = (sizes * times < sizes.max()) & (power > 0)
        for first, last in _runs(small & (power < error * 10 ** (lost / 10))):
            rows = slice(first, last + 1)
            figure = 10 * float(np.log10(power[rows].sum() / error[rows].sum()))
            yield _axis_part(first, last, axis, shape), figure


def _axes(shape: Sequence[int], samples: int) -> list[int]:
    """Return the axes of channels and of columns, if they are long enough to have parts and not too long."""
    dims = len(shape)
    axes = sorted({dims - 1, 1 if dims > 2 else dims - 1}) if dims else []
    size = samples * int(np.prod(shape))
    return [at for at in axes if shape[at] > 1 and (shape[at] <= _LONG or size // shape[at] >= _ENOUGH_VALUES)]


def _axis_part(first: int, last: int, axis: int, shape: Sequence[int]) -> Part:
    rows = np.zeros(shape[axis], dtype=np.bool_)
    rows[first : last + 1] = True
    return Part(_range(first, last, axis, len(shape)), np.broadcast_to(_along(rows, axis, len(shape)), tuple(shape)))


def _runs(flags: Array) -> list[tuple[int, int]]:
    """Return the first and last index of each run of neighbours that are set."""
    runs: list[tuple[int, int]] = []
    for at in flags.nonzero()[0].tolist():
        if runs and runs[-1][1] == at - 1:
            runs[-1] = (runs[-1][0], at)
        else:
            runs.append((at, at))
    return runs
