"""Builds the weights block of a graph: every constant at a 16-byte boundary, equal ones stored once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.compiler.l1 import KernelGraph
from openneutron.microcode.encode import align
from openneutron.microcode.storage.sections import Section, Sizes

_END = 64  # bytes by which constants of one length nearly always differ


@dataclass
class Constants:
    """The weights block, and the offset of each array by its `id`, which is stable because the graph keeps its arrays alive.

    `sections` say how the constants are coded; without sections all are plain.
    """

    block: bytes = b""
    sections: tuple[Section, ...] = ()
    _offsets: dict[int, int] = field(default_factory=dict)
    _sizes: dict[int, int] = field(default_factory=dict)

    def offset(self, data: npt.NDArray[Any]) -> int:
        """Return the array's offset in the block."""
        return self._offsets[id(data)]

    def coded_sizes(self) -> dict[int, int]:
        """Return the coded size of each array by its `id`; plain arrays are left out."""
        sizes = Sizes(self.sections)
        found = {key: sizes.coded_bytes(offset, self._sizes[key]) for key, offset in self._offsets.items()}
        return {key: size for key, size in found.items() if size}


def constants_of(graph: KernelGraph) -> Constants:
    """Gather the constants in the order of the nodes that use them."""
    parts: list[bytes | memoryview] = []
    size = 0
    # Found by length and both ends: hashing all bytes would take longer than joining them.
    places: dict[tuple[int, bytes, bytes], list[tuple[npt.NDArray[np.uint8], int]]] = {}
    found = Constants()
    for node in graph.nodes:
        for operand in node.operands:
            data = graph.values[graph.root(operand)].data if isinstance(operand, int) else operand
            if data is None or id(data) in found._offsets:
                continue
            content = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
            ends = content[:_END].tobytes(), content[-_END:].tobytes()
            alike = places.setdefault((len(content), *ends), [])
            place = next((at for known, at in alike if np.array_equal(known, content)), -1)
            if place < 0:
                place = align(size)
                parts += (bytes(place - size), content.data)
                size = place + len(content)
                alike.append((content, place))
            found._offsets[id(data)] = place
            found._sizes[id(data)] = len(content)
    found.block = b"".join((*parts, bytes(align(size) - size)))
    return found
