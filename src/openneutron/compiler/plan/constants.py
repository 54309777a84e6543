"""Builds the weights block of a graph: every constant at a 16-byte boundary, equal ones stored once.

The block may begin with that of another program, whose constants this one then uses where they are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.compiler.l1 import KernelGraph
from openneutron.microcode.encode import align
from openneutron.microcode.instructions import Call, Dma, Loop, Program
from openneutron.microcode.storage.sections import Section, Sizes, raw
from openneutron.microcode.table import ALIGNMENT, Region

_WORD = 4  # bytes; stored sections begin at a whole word
_END = 64  # bytes by which constants of one length nearly always differ


@dataclass(frozen=True, eq=False)
class KnownWeights:
    """The plain weights block of another program, the places where its constants begin, and its sections."""

    block: bytes
    sections: tuple[Section, ...]
    _places: dict[bytes, list[int]]

    @staticmethod
    def of(program: Program, stored_bytes: int) -> KnownWeights:
        """Return the weights of a decoded program, which as they are stored take so many bytes."""
        starts = sorted(set(_weight_offsets(program)))
        places: dict[bytes, list[int]] = {}
        for at in starts:
            places.setdefault(program.weights[at : at + ALIGNMENT], []).append(at)
        block, sections = program.weights, program.sections
        # What is stored ends at a whole ALIGNMENT; a section behind it would begin at the next word.
        gap = stored_bytes - sum(align(section.stored, _WORD) for section in sections) if sections else 0
        if gap:
            block, sections = block + bytes(ALIGNMENT), (*sections, raw(gap))
        return KnownWeights(block, sections, places)

    def find(self, content: memoryview) -> int:
        """Return where these bytes are a constant, -1 where they are none."""
        first = bytes(content[:ALIGNMENT]).ljust(ALIGNMENT, b"\0")
        found = (at for at in self._places.get(first, ()) if self.block[at : at + len(content)] == content)
        return next(found, -1)


def _weight_offsets(program: Program) -> Iterator[int]:
    for item in program.instructions:
        for step in item.body if isinstance(item, Loop) else (item,):
            if isinstance(step, Call):
                yield from (one.offset for one in step.operands if one.region is Region.WEIGHTS)
            elif isinstance(step, Dma) and step.source_region is Region.WEIGHTS:
                yield step.source_offset


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


def constants_of(graph: KernelGraph, known: KnownWeights | None = None) -> Constants:
    """Gather the constants in the order of the nodes that use them, behind `known` ones."""
    parts: list[bytes | memoryview] = [known.block] if known is not None else []
    size = len(known.block) if known is not None else 0
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
            place = next((at for other, at in alike if np.array_equal(other, content)), -1)
            if place < 0 and known is not None:
                place = known.find(content.data)
            if place < 0:
                place = align(size)
                parts += (bytes(place - size), content.data)
                size = place + len(content)
                alike.append((content, place))
            found._offsets[id(data)] = place
            found._sizes[id(data)] = len(content)
    found.block = b"".join((*parts, bytes(align(size) - size)))
    return found
