"""Checks that a microcode block has its parts in order with nothing else between them, and that the header agrees with them.

header | identity | tensor table | state table | code | section table | zeros
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from openneutron.certify.refused import KERNELS, Refused

if TYPE_CHECKING:
    from openneutron.certify.read.microcode import Program

HEADER, IDENTITY = 128, 48  # bytes
_ROW, _STATE = 48, 16  # bytes of a row of the tensor table and of the state table
_RESERVED = 27  # first unused word of the header; all from here on are zero
_FORMAT = 1
_NO_SOURCE = 0xFFFFFFFF
_PROFILE_RECORD = 16  # bytes that one call writes


def check_layout(block: bytes, words: list[int], sections_end: int) -> None:
    """Refuse parts out of order, bytes between or behind them, and non-zero unused words of the header."""
    tensors = HEADER + IDENTITY
    states = tensors + _ROW * words[15]
    code = states + _STATE * words[22]
    sections = code + words[17]
    wanted = {
        4: HEADER, 5: tensors, 16: code, 21: states if words[22] else 0, 23: sections if words[24] else 0,
    }  # fmt: skip
    for word, place in wanted.items():
        if words[word] != place:
            raise Refused(f"a part that begins at byte {place} is said to begin at {words[word]}", 4 * word)
    if words[3] > 3 or any(words[_RESERVED:]) or (not words[24] and (words[25] or words[26])):
        raise Refused("the header has words that mean nothing", 12)
    if int.from_bytes(block[HEADER + 16 : HEADER + 20], "little") != _FORMAT:
        raise Refused("the format's version is not 1", HEADER + 16)
    name = block[HEADER : HEADER + 16]
    if any(name[name.index(0) :]) if 0 in name else True:
        raise Refused("the target's name does not end", HEADER)
    end = sections_end if words[24] else sections
    if any(block[end:]):
        raise Refused("bytes behind the last part", end + next(at for at, one in enumerate(block[end:]) if one))


def check_counts(words: list[int], program: Program, calls: int, coded: list[tuple[int, int]]) -> None:
    """Refuse a header whose counts or sizes differ from the program's; `coded` are the places of coded sections."""
    kinds = [sum(row["kind"] == kind for row in program.tensors) for kind in (0, 1)]
    if words[3] & 1:
        stated, wanted = words[10:12] + words[13:15], [_PROFILE_RECORD * calls, 0, *kinds]
    else:
        stated, wanted = words[11:15], [*kinds, calls, 0]
    if stated != wanted:
        raise Refused(f"the header counts {stated}, the program has {wanted}", 40)
    if (window := window_bytes(program, coded)) != words[26]:
        raise Refused(f"calls read {window} bytes of coded constants at the most, the header says {words[26]}", 104)
    for at, row in enumerate(program.tensors):
        if row["kind"] != (at >= kinds[0]) or row["index"] != at - kinds[0] * (at >= kinds[0]):
            raise Refused("the tensor table is not inputs, then outputs", row["at"])


def window_bytes(program: Program, coded: list[tuple[int, int]]) -> int:
    """Return the most bytes of coded sections that one call, copy or state reads, each section counted whole."""
    from openneutron.certify.read.microcode import Call, Copy, Loop

    firsts, ends = [first for first, _ in coded], [end for _, end in coded]

    def largest(start: int, size: int) -> int:
        among = range(bisect_right(ends, start), bisect_left(firsts, start + size))
        return max((ends[one] - firsts[one] for one in among), default=0)

    def around(start: int) -> int:
        one = bisect_right(firsts, start) - 1
        return ends[one] - firsts[one] if one >= 0 and start < ends[one] else 0

    most = max((largest(one.source, len(one.initial)) for one in program.states if one.source is not None), default=0)
    for item in program.steps:
        for step in item.body if isinstance(item, Loop) else (item,):
            if isinstance(step, Call):
                operands = [o for o in step.operands.values() if o.region == "weights"]
                most = max(most, sum(around(o.offset) for o in operands))
            elif isinstance(step, Copy) and step.source[0] == "weights":
                most = max(most, largest(step.source[2], step.size))
    return most


def check_kernels(kernels: bytes, called: set[int], *, listed: bool) -> None:
    """Refuse a kernels block other than the sorted numbers of the called kernels.

    Where the firmware is linked (`listed` is false), the block must be one zero word.
    """
    numbers = sorted(called) if listed else []
    wanted = struct.pack(f"<I{len(numbers)}H", len(numbers), *numbers)
    wanted = wanted.ljust(-(-len(wanted) // 4) * 4, b"\0")
    if kernels == wanted:
        return
    ends = min(len(kernels), len(wanted))
    byte = next((at for at in range(ends) if kernels[at] != wanted[at]), ends)
    if not listed:
        raise Refused("a target with linked firmware has a kernels block", byte, KERNELS)
    raise Refused(f"the kernels block does not list kernels {numbers}, which the code calls", byte, KERNELS)
