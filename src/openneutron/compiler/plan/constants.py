"""The weights block of one graph: every constant at a 16-byte boundary, equal ones stored once."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.compiler.l1 import KernelGraph
from openneutron.microcode.encode import align
from openneutron.records import dataclass


@dataclass
class Constants:
    """Offsets by the identity of the array: a graph keeps its arrays alive, and schedules ask many times."""

    block: bytes = b""
    _offsets: dict[int, int] = field(default_factory=dict)

    def offset(self, data: npt.NDArray[Any]) -> int:
        """Where the array lies in the block."""
        return self._offsets[id(data)]


def constants_of(graph: KernelGraph) -> Constants:
    """Gather the constants in the order of the nodes that use them."""
    block = bytearray()
    places: dict[bytes, int] = {}
    found = Constants()
    for node in graph.nodes:
        for operand in node.operands:
            data = graph.values[graph.root(operand)].data if isinstance(operand, int) else operand
            if data is None or id(data) in found._offsets:
                continue
            key = np.ascontiguousarray(data).tobytes()
            if key not in places:
                block.extend(bytes(align(len(block)) - len(block)))
                places[key] = len(block)
                block.extend(key)
            found._offsets[id(data)] = places[key]
    found.block = bytes(block)
    return found
