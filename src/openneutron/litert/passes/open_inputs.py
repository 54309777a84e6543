"""Sizes of inputs that a file leaves open, as samples have them: a sound of any length is stated as one number.

Before:  x: shape [1], any size; a sample has 15,600 numbers
After:   x: shape [15600], any size
"""

from __future__ import annotations

from collections.abc import Sequence

from openneutron.litert.graph import Graph, Tensor

Shape = tuple[int, ...]


def size_open_inputs(graph: Graph, shapes: Sequence[Shape]) -> int:
    """Give inputs with open sizes those of a sample, whose shapes come in their order; returns how many changed.

    An open first dimension of several is a batch and stays. What follows from the inputs is found by `resolve_shape`.

    Example:
        >>> size_open_inputs(model.main, [(15600,)])
        1
    """
    count = 0
    for index, given in zip(graph.inputs, shapes, strict=False):
        tensor = graph.tensors[index]
        shape = _shape_of(tensor, given)
        if shape is not None and shape != tensor.shape:
            tensor.shape = shape
            count += 1
    return count


def _shape_of(tensor: Tensor, given: Shape) -> Shape | None:
    """Return the input's shape for a sample of a shape; None where that does not fit."""
    signature = tensor.shape_signature or ()
    if len(signature) > 1 and signature[0] == -1:
        rest = given[1:] if len(given) == len(signature) else given
        given = (tensor.shape[0], *rest)
    if -1 not in signature or len(given) != len(signature) or 0 in given:
        return None
    if any(fixed not in (-1, size) for fixed, size in zip(signature, given, strict=True)):
        return None
    return given
