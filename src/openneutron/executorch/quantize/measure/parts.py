"""Parts of an output: the pieces that a model joins to make it, or its channels and columns.

The piece of an element is found by data flow: every computed value is replaced by a number that identifies it, and the
operators behind it that only move data are run on these numbers.

Example:
    >>> labels = piece_labels(torch.export.export(detector, (image,)))
    >>> [part.name for part in join_parts(labels[0], labels[0].shape)]
    ['columns 0..3', 'columns 4..8']
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.node import map_arg

from openneutron.executorch.fx import is_view, operator_name, value_of

# Operators that copy their data, and otherwise only move it.
_MOVES: Final = frozenset({
    "aten.cat.default", "aten.stack.default", "aten.clone.default", "aten.reshape.default", "aten.copy.default",
    "aten.slice_scatter.default", "aten.select_scatter.default", "aten.repeat.default", "aten.roll.default",
    "aten.flip.default", "aten.pixel_shuffle.default", "aten.concat.default", "aten.hstack.default",
    "aten.vstack.default", "aten.index_select.default", "aten.tile.default",
})  # fmt: skip
_MOST_PIECES: Final = 64  # more pieces would not help a reader
_MOST_LONG: Final = 256  # longest axis examined index by index; longer ones have too few values each


@dataclass(frozen=True)
class Part:
    """A subset of an output's elements, its name, and its SQNR once measured."""

    name: str
    where: torch.Tensor
    sqnr: float = 0.0


def piece_labels(program: ExportedProgram) -> list[torch.Tensor | None]:
    """Return for each output a tensor that numbers the values it is joined from; None if it is one value."""
    found: list[torch.Tensor | None] = []
    user = set(program.graph_signature.user_outputs)
    results = program.graph.output_node().args[0]
    for node in results if isinstance(results, (tuple, list)) else [results]:
        if not isinstance(node, Node) or node.name not in user or not isinstance(value_of(node), torch.Tensor):
            continue
        found.append(_labels(node))
    return found


def _labels(output: Node) -> torch.Tensor | None:
    numbers: dict[Node, int] = {}
    made: dict[Node, Any] = {}

    def label(node: Node) -> Any:
        if node not in made:
            made[node] = _move_numbers(node, label) if only_moves(node) else _number_values(node, numbers)
        return made[node]

    try:
        labels = label(output)
    except (RuntimeError, TypeError, RecursionError):  # an operator without a kernel for integers
        return None
    if not isinstance(labels, torch.Tensor) or not 2 <= len(labels.unique()) <= _MOST_PIECES:
        return None
    return labels


def only_moves(node: Node) -> bool:
    """Return whether an operator copies its data, and otherwise only moves it."""
    if node.op != "call_function":
        return False
    if operator_name(node) == "getitem":
        return isinstance(node.args[0], Node) and only_moves(node.args[0])
    return is_view(node) or operator_name(node) in _MOVES


def _move_numbers(node: Node, label: Any) -> Any:
    args, kwargs = map_arg((node.args, dict(node.kwargs)), label)
    return node.target(*args, **kwargs)  # type: ignore[operator]


def _number_values(node: Node, numbers: dict[Node, int]) -> Any:
    value = value_of(node)
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"{node.name} is several values")
    return torch.full(tuple(value.shape), numbers.setdefault(node, len(numbers)), dtype=torch.int32)


def join_parts(labels: torch.Tensor, shape: torch.Size) -> Iterator[Part]:
    """Yield the pieces of an output, named by their position."""
    for number in labels.unique().tolist():
        where = (labels == number).reshape(shape)
        yield Part(_place(where), where)


def _place(where: torch.Tensor) -> str:
    """Describe a piece's position: a range of one axis, or its number of elements if it is scattered."""
    for axis in reversed(range(where.dim())):
        others = [at for at in range(where.dim()) if at != axis]
        rows = where.all(dim=others) if others else where
        if bool((where == _along(rows, axis, where.dim())).all()):
            at = rows.nonzero().reshape(-1)
            if len(at) == int(at[-1] - at[0]) + 1:
                return _range(int(at[0]), int(at[-1]), axis, where.dim())
    return f"{int(where.sum())} elements"


def _along(rows: torch.Tensor, axis: int, dims: int) -> torch.Tensor:
    return rows.reshape([-1 if at == axis else 1 for at in range(dims)])


def _range(first: int, last: int, axis: int, dims: int) -> str:
    name = "column" if axis == dims - 1 else "channel" if axis == 1 else f"axis {axis} index"
    if first == last:
        return f"{name} {first}"
    return f"{'axis ' + str(axis) + ' indices' if name.startswith('axis') else name + 's'} {first}..{last}"


def axis_parts(signal: torch.Tensor, noise: torch.Tensor, lost: float) -> Iterator[Part]:
    """Yield channels and columns: neighbours below `lost` dB as one part, and the worst one of each axis."""
    dims = signal.dim()
    for axis in {dims - 1, 1 if dims > 2 else dims - 1}:
        if not 2 <= signal.shape[axis] <= _MOST_LONG if dims else True:
            continue
        others = [at for at in range(dims) if at != axis]
        power, error = (x.sum(dim=others) if others else x for x in (signal, noise))
        ratio = power / error.clamp_min(1e-300)
        for first, last in _runs(ratio < 10 ** (lost / 10)) or [(int(ratio.argmin()),) * 2]:
            rows = torch.zeros(len(ratio), dtype=torch.bool)
            rows[first : last + 1] = True
            yield Part(_range(first, last, axis, dims), _along(rows, axis, dims).expand(signal.shape))


def _runs(flags: torch.Tensor) -> list[tuple[int, int]]:
    """Return the first and last index of each run of neighbours that are set."""
    runs: list[tuple[int, int]] = []
    for at in flags.nonzero().reshape(-1).tolist():
        if runs and runs[-1][1] == at - 1:
            runs[-1] = (runs[-1][0], at)
        else:
            runs.append((at, at))
    return runs
