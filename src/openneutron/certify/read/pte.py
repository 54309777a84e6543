"""The checker's own look into a `.pte`: the blocks of each Neutron delegate, and which arguments it takes them to be of."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from openneutron.certify.read.flat import Table, root
from openneutron.certify.refused import Refused

_BACKEND = b"NeutronBackend"
_EXTENDED = struct.Struct("<4sIQQ")  # at byte 8: magic, length, program bytes, where segments begin


@dataclass(frozen=True)
class Delegate:
    """A delegate's payload: microcode, weights and kernels, where they begin in the file, and its maps.

    Input k of the microcode is argument `inputs[k]` of the delegate, output k is its result `outputs[k]`.
    """

    blocks: tuple[bytes, bytes, bytes]
    starts: tuple[int, int, int]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    maps: int  # byte of the file where the maps begin


def delegates(data: bytes) -> list[Delegate]:
    """The Neutron delegates, in the order of the program."""
    program = root(data, data[4:8] if data[4:6] == b"ET" else b"ET12")
    plans = program.tables(1)
    if not plans:
        raise Refused("the program has no plan", program.position)
    return [_delegate(data, *_payload(data, program, one)) for one in plans[0].tables(7) if one.text(0) == _BACKEND]


def _payload(data: bytes, program: Table, delegate: Table) -> tuple[int, int]:
    """Where a payload begins and ends in the file."""
    reference = delegate.table(1)
    if reference is None:
        raise Refused("a delegate has no data", delegate.position)
    segment, index = reference.scalar(0, "b", 0), reference.scalar(1, "I", 0)
    holders = program.tables(4 if segment else 3)
    if index >= len(holders):
        raise Refused(f"a delegate's data is number {index} of {len(holders)}", reference.position)
    if not segment:
        start = holders[index].target(0) + 4
        return start, start + len(holders[index].text(0))
    magic, _, _, base = _EXTENDED.unpack_from(data, 8) if len(data) >= 8 + _EXTENDED.size else (b"", 0, 0, 0)
    if magic != b"eh00":
        raise Refused("segments without a header that says where they begin", 8)
    start, size = int(base + holders[index].scalar(0, "Q", 0)), int(holders[index].scalar(1, "Q", 0))
    if start + size > len(data):
        raise Refused("a segment leaves the file", holders[index].position)
    return start, start + size


def _delegate(data: bytes, start: int, end: int) -> Delegate:
    if end - start < 3:
        raise Refused("a payload is empty", start)
    given, made = data[start], data[start + 1]
    maps = start + 3 + given + made
    at = start + _aligned(4 + 2 * (given + made))
    if at + 36 > end:
        raise Refused("a payload ends inside its header", end)
    blocks, starts = [], []
    for size in struct.unpack_from("<3I", data, at + 24):
        if at + size > end:
            raise Refused("a payload ends inside a block", at)
        blocks.append(data[at : at + size])
        starts.append(at)
        at += _aligned(size)
    every = tuple(data[maps : maps + given + made])
    return Delegate(
        (blocks[0], blocks[1], blocks[2]), (starts[0], starts[1], starts[2]), every[:given], every[given:], maps
    )


def _aligned(size: int) -> int:
    return -(-size // 16) * 16
