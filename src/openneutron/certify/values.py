"""Tags of the tensors of one graph."""

from __future__ import annotations

from array import array

from openneutron.certify.read.litert import Graph, Tensor
from openneutron.certify.tags import constant

Buffers = dict[tuple[int, int], "array[int]"]  # where a constant's bytes lie → their tags


def _empty(tensor: Tensor) -> bool:
    """A tensor without elements has its value, whether or not the file says so."""
    return tensor.item > 0 and tensor.size == 0


class Values(dict[int, "array[int]"]):
    """Tags by tensor. Those of constants are made when they are read, once for each buffer: blocks of microcode never are."""

    def __init__(self, graph: Graph, made: Buffers | None = None) -> None:
        super().__init__()
        self.tensors = graph.tensors
        self.made: Buffers = {} if made is None else made

    def known(self, index: int) -> bool:
        """Is this a constant, or was it computed?"""
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
