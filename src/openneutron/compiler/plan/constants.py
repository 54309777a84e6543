"""The weights block of one graph: every constant at a 16-byte boundary, equal ones stored once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.compiler.l1 import KernelGraph
from openneutron.microcode.encode import align
from openneutron.microcode.storage.sections import Section, Sizes
from openneutron.records import dataclass, field

_END = 64  # bytes by which constants of one length nearly always differ


@dataclass
class Constants:
    """The block, and offsets by the identity of the array: a graph keeps its arrays alive, and schedules ask many times.

    `sections` say how they are stored, none that they are plain.
    """

    block: bytes = b""
    sections: tuple[Section, ...] = ()
    _offsets: dict[int, int] = field(default_factory=dict)
    _sizes: dict[int, int] = field(default_factory=dict)

    def offset(self, data: npt.NDArray[Any]) -> int:
        """Where the array lies in the block."""
        return self._offsets[id(data)]

    def stored(self) -> dict[int, int]:
        """Bytes that each array is coded in, by its identity; those of plain ones are missing."""
        sizes = Sizes(self.sections)
        found = {key: sizes.stored(offset, self._sizes[key]) for key, offset in self._offsets.items()}
        return {key: size for key, size in found.items() if size}


def constants_of(graph: KernelGraph) -> Constants:
    """Gather the constants in the order of the nodes that use them."""
    parts: list[bytes | memoryview] = []
    size = 0
    # By length and both ends: hashing all bytes would take longer than putting them together.
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
