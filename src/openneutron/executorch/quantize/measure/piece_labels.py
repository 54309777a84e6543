"""Find the pieces that a model joins to make an output.

The piece of an element is found by data flow: every computed value is replaced by a number that identifies it, and the
operators behind it that only move data are run on these numbers.

Example:
    >>> labels = piece_labels(torch.export.export(detector, (image,)))
    >>> [part.name for part in join_parts(labels[0].numpy(), labels[0].shape)]
    ['columns 0..3', 'columns 4..8']
"""

from __future__ import annotations

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
