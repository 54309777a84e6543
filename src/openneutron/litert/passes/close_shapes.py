"""Replace open sizes of graph inputs by those that the file states, because a compiled model runs at one size.

Before:  x: shape [1, 32, 32, 3], any size allowed for the first
After:   x: shape [1, 32, 32, 3]
"""

from __future__ import annotations

from openneutron.litert.graph import Graph


def close_shapes(graph: Graph) -> tuple[str, ...]:
    """Rewrite in place; returns one sentence for each graph input that had open sizes.

    Example:
        >>> close_shapes(model.main)
        ("input 'x' of any size [-1, 32, 32, 3] is compiled for [1, 32, 32, 3]",)
    """
    notes = []
    for index, tensor in enumerate(graph.tensors):
        signature = tensor.shape_signature
        if signature is None or -1 not in signature:
            continue
        if index in graph.inputs:
            notes.append(f"input {tensor.name!r} of any size {list(signature)} is compiled for {list(tensor.shape)}")
        tensor.shape_signature = None
    return tuple(notes)
