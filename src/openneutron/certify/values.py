"""The tags of the tensors of one graph."""

from __future__ import annotations

from array import array

from openneutron.certify.read.litert import Graph, Tensor
from openneutron.certify.tags import constant

Buffers = dict[tuple[int, int], "array[int]"]  # (position, size) of a constant's bytes → their tags


def _empty(tensor: Tensor) -> bool:
    """Return whether the tensor has no elements; its value is then known, whether or not the file has data for it."""
    return tensor.item > 0 and tensor.size == 0


class Values(dict[int, "array[int]"]):
    """Tags by tensor number.

    Tags of a constant are made at its first use, once per buffer: blocks of microcode are never used as values.
    """

    def __init__(self, graph: Graph, made: Buffers | None = None) -> None:
        super().__init__()
        self.tensors = graph.tensors
        self.made: Buffers = {} if made is None else made

    def is_known(self, index: int) -> bool:
        """Return whether the tensor is a constant or was computed."""
        tensor = self.tensors[index]
        return index in self or tensor.data is not None or _empty(tensor)

    def __missing__(self, index: int) -> array[int]:
        tensor = self.tensors[index]
        if tensor.data is None:
            if not _empty(tensor):
                raise KeyError(index)
            self[index] = array("Q")
            return self[index]
        key = tensor.at, len(tensor.data)
        if key not in self.made:
            self.made[key] = constant(tensor.data)
        self[index] = self.made[key]
        return self[index]
