"""The weights block of one graph: every constant at a 16-byte boundary, equal ones stored once."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from openneutron.compiler.l1 import KernelGraph
from openneutron.microcode.encode import align
from openneutron.microcode.storage.sections import Section, Sizes
from openneutron.records import dataclass, field

_END = 64  # bytes by which constants of one length nearly always differ


@dataclass
class Constants:
    """Offsets by the identity of the array: a graph keeps its arrays alive, and schedules ask many times.

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
    parts: list[bytes] = []
    size = 0
    # By length and both ends: hashing all bytes would take longer than putting them together.
    places: dict[tuple[int, bytes, bytes], list[tuple[bytes, int]]] = {}
    found = Constants()
    for node in graph.nodes:
        for operand in node.operands:
            data = graph.values[graph.root(operand)].data if isinstance(operand, int) else operand
            if data is None or id(data) in found._offsets:
                continue
            content = data.tobytes()
            alike = places.setdefault((len(content), content[:_END], content[-_END:]), [])
            place = next((at for known, at in alike if known == content), -1)
            if place < 0:
                place = align(size)
                parts += (bytes(place - size), content)
                size = place + len(content)
                alike.append((content, place))
            found._offsets[id(data)] = place
            found._sizes[id(data)] = len(content)
    found.block = b"".join(parts)
    return found
