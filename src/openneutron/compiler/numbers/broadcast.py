"""Numpy broadcasting on four dimensions: adjacent dimensions with the same pattern become one."""

from __future__ import annotations

from dataclasses import dataclass

from openneutron.compiler.legalizer import shape4

Shape4 = tuple[int, int, int, int]


@dataclass(frozen=True)
class Broadcast:
    """Shapes of inputs and output as the kernels see them; a dimension of 1 in an input repeats."""

    inputs: tuple[Shape4, ...]
    output: Shape4


def broadcast(inputs: tuple[tuple[int, ...], ...], output: tuple[int, ...]) -> Broadcast | None:
    """The 4-D form of a broadcast, None when inputs do not broadcast or the pattern changes too often.

    Up to rank 4 nothing is regrouped, so that rows stay rows.

    Example:
        >>> broadcast(((2, 3, 4, 5, 6), (5, 6)), (2, 3, 4, 5, 6)).inputs
        ((1, 1, 24, 30), (1, 1, 1, 30))
    """
    rank = len(output)
    if any(len(shape) > rank for shape in inputs):
        return None
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in inputs]
    if any(size not in (1, out) for shape in padded for size, out in zip(shape, output, strict=True)):
        return None
    if rank <= 4 or all(shape == tuple(output) for shape in padded):
        return Broadcast(tuple(shape4(shape) for shape in padded), shape4(tuple(output)))
    groups: list[tuple[tuple[bool, ...], int]] = []  # (which inputs are full here, size)
    for axis, out in enumerate(output):
        if out == 1:
            continue
        full = tuple(shape[axis] == out for shape in padded)
        if groups and groups[-1][0] == full:
            groups[-1] = (full, groups[-1][1] * out)
        else:
            groups.append((full, out))
    if len(groups) > 4:
        return None
    sizes = [[size if full[at] else 1 for full, size in groups] for at in range(len(inputs))]
    return Broadcast(tuple(shape4(tuple(shape)) for shape in sizes), shape4(tuple(size for _, size in groups)))


def inputs_to_repeat(inputs: tuple[tuple[int, ...], ...], output: tuple[int, ...]) -> tuple[int, ...] | None:
    """Which of two inputs must be written out in full before the rest is a broadcast; None when nothing helps.

    Example:
        >>> inputs_to_repeat(((2, 1, 2, 1, 2), (2, 2, 2, 2, 2)), (2, 2, 2, 2, 2))
        (0,)
    """
    for chosen in ((), (1,), (0,), (0, 1)):
        if broadcast(tuple(output if at in chosen else shape for at, shape in enumerate(inputs)), output) is None:
            continue
        return chosen if all(_repeats(inputs[at], output) for at in chosen) else None
    return None


def _repeats(shape: tuple[int, ...], output: tuple[int, ...]) -> bool:
    padded = (1,) * (len(output) - len(shape)) + tuple(shape)
    return len(shape) <= len(output) and all(size in (1, out) for size, out in zip(padded, output, strict=True))
