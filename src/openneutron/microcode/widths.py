"""Least stored widths of packed words: a program with repeated steps takes the same bytes for 25 steps as for 250.

Words that grow with the steps (counts, sizes and places) have a width of their own instead of that of their number, and so have
numbers that calibration finds, which may be zero or not. What is 0 or 1 for any number of steps takes no more than it needs.

Example:
    >>> widths_of(Loop(25, body))
    [2, 0]
"""

from __future__ import annotations

from openneutron.microcode.abi import least_bytes
from openneutron.microcode.instructions import Call, Dma, Instruction, Loop, Operand
from openneutron.microcode.table import Region

COUNT = 2  # bytes: with their sign, 32,767 steps
PLACE = 4  # bytes: memory of a target has more than 32 KB
# Of a section's words: what a table of biases is stored in depends on the ranges that calibration finds.
SECTION_WIDTHS = (0, 0, COUNT, 0, 0, 0, 0)
_CONSTANT = (Region.WEIGHTS, Region.PREFETCH, Region.STATE)  # what lies there is the same for any number of steps
_SHARED = (Region.SCRATCH, Region.TCM)  # where something lies depends on the sizes of all the others


def _count(number: int) -> int:
    """Return the least width of a count; 0 and 1 do not depend on the number of steps."""
    return COUNT if number not in (0, 1) else 0


def _place(region: Region, offset: int) -> int:
    """Return the least width of an offset; the beginning of an input or output is 0 for any number of steps."""
    return PLACE if region in _SHARED or (region not in _CONSTANT and offset) else 0


def _operand(o: Operand) -> list[int]:
    if o.region in _CONSTANT:
        return [0] * 10
    pitch = PLACE if o.width > 1 else 0
    plane = PLACE if o.height > 1 else pitch
    pixel = PLACE if o.pixel > o.pitch else 0  # pixels are samples of a batch, all steps of one in front of the next's
    sizes = [0, _count(o.height), _count(o.width), 0]  # batch, height, width, channels
    return [0, _place(o.region, o.offset), plane, pitch, pixel, _count(o.ring), *sizes]


def widths_of(item: Instruction) -> list[int]:
    """Return the least width of each word behind an instruction's first; a loop is taken without its body."""
    if isinstance(item, Loop):
        return [COUNT, 0]
    if isinstance(item, Call):
        rows = [_count(item.first_row), _count(item.rows), 0]
        return [0, 0, *rows, *(width for o in item.operands for width in _operand(o)), *least_bytes(item.params)]
    if isinstance(item, Dma):
        size = 0 if item.source_region in _CONSTANT or item.target_region in _CONSTANT else PLACE
        ends = (item.source_region, item.source_offset), (item.target_region, item.target_offset)
        return [0, *(_place(*end) for end in ends), size]
    return [0]
