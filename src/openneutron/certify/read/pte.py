"""Reads a `.pte`: the blocks of each Neutron delegate, and the order of its arguments and results.

Weights that methods share are stored apart from their payloads, as named data. The rest of the file is its frame; it is
compared with the frame in the debug bundle byte for byte.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from openneutron.certify.read.flat import Table, root
from openneutron.certify.refused import Refused

_BACKEND = b"NeutronBackend"
_FIRST = b"forward"  # the method whose partitions come first in the bundle; the others follow in the file's order
_EXTENDED = struct.Struct("<4sIQQ")  # at byte 8: magic, length, program bytes, where segments begin
# Behind a payload whose weights are stored apart: key of the named data, place in the payload, size, version, magic.
_APART, _APART_MAGIC = struct.Struct("<48sIII4s"), b"ONSw"
_CHECKSUM = 4  # the last bytes of a payload


@dataclass(frozen=True)
class Delegate:
    """A delegate's payload: microcode, weights and kernels, their positions in the file, and its maps.

    Input k of the microcode is argument `inputs[k]` of the delegate, output k is its result `outputs[k]`.
    """

    blocks: tuple[bytes, bytes, bytes]
    starts: tuple[int, int, int]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    maps: int  # byte of the file where the maps begin
    end: int  # byte of the file behind the payload, and behind its checksum


def delegates(data: bytes) -> list[Delegate]:
    """Return the Neutron delegates in the order of the program."""
    program = root(data, data[4:8] if data[4:6] == b"ET" else b"ET12", "the program")
    plans = program.tables(1, "a plan")
    if not plans:
        raise Refused("the program has no plan", program.position)
    # Methods that return a constant are plans without delegates; they are part of the frame.
    plans.sort(key=lambda plan: plan.text(0) != _FIRST)
    found = [one for plan in plans for one in plan.tables(7, "a delegate")]
    return [_delegate(data, program, *_payload(data, program, one)) for one in found if one.text(0) == _BACKEND]


def frame(data: bytes, found: list[Delegate]) -> bytes:
    """Return the file with zeros in place of the delegates' blocks and the checksums over them."""
    made = bytearray(data)
    for one in found:
        for start, block in zip(one.starts, one.blocks, strict=True):
            made[start : start + len(block)] = bytes(len(block))
        made[one.end - _CHECKSUM : one.end] = bytes(_CHECKSUM)
    return bytes(made)


def _payload(data: bytes, program: Table, delegate: Table) -> tuple[int, int]:
    """Return the positions in the file where a payload begins and ends."""
    reference = delegate.table(1, "a delegate's data")
    if reference is None:
        raise Refused("a delegate has no data", delegate.position)
    segment, index = reference.scalar(0, "b", 0), reference.scalar(1, "I", 0)
    holders = program.tables(4, "a segment") if segment else program.tables(3, "inline data")
    if index >= len(holders):
        raise Refused(f"a delegate's data is number {index} of {len(holders)}", reference.position)
    if not segment:
        start = holders[index].target(0) + 4
        return start, start + len(holders[index].raw(0) or b"")
    return _segment(data, holders[index])


def _segment(data: bytes, segment: Table) -> tuple[int, int]:
    magic, _, _, base = _EXTENDED.unpack_from(data, 8) if len(data) >= 8 + _EXTENDED.size else (b"", 0, 0, 0)
    if magic != b"eh00":
        raise Refused("segments without a header that says where they begin", 8)
    start, size = int(base + segment.scalar(0, "Q", 0)), int(segment.scalar(1, "Q", 0))
    if start + size > len(data):
        raise Refused("a segment leaves the file", segment.position)
    return start, start + size


def _find_named(data: bytes, program: Table, key: bytes) -> tuple[int, int]:
    """Return the positions of the named data of a key."""
    segments = program.tables(4, "a segment")
    for one in program.tables(7, "named data"):
        if one.text(0) == key:
            index = one.scalar(1, "I", 0)
            if index >= len(segments):
                raise Refused(f"named data is segment {index} of {len(segments)}", one.position)
            return _segment(data, segments[index])
    raise Refused(f"there is no named data {key.decode('ascii', 'replace')!r}", program.position)


def _delegate(data: bytes, program: Table, start: int, end: int) -> Delegate:
    if end - start < 3:
        raise Refused("a payload is empty", start)
    apart: tuple[int, int, int] | None = (
        None  # weights stored apart: their place in the payload, in the file, their size
    )
    if end - start >= _APART.size and data[end - 4 : end] == _APART_MAGIC:
        end -= _APART.size
        key, place, size, version = _APART.unpack_from(data, end)[:4]
        held, until = _find_named(data, program, key.rstrip(b"\0"))
        if version != 1 or held + size > until:
            raise Refused(f"weights stored apart have version {version} and {size} of {until - held} bytes", end)
        apart = start + place, held, size
    given, made = data[start], data[start + 1]
    maps = start + 3 + given + made
    at = start + _align(4 + 2 * (given + made))
    if at + 36 > end:
        raise Refused("a payload ends inside its header", end)
    blocks, starts, crc, summed = [], [], 0, start
    for name, size in zip(("microcode", "weights", "kernels"), struct.unpack_from("<3I", data, at + 24), strict=True):
        if name == "weights" and apart is not None:
            if apart[0] != at or apart[2] != size:
                raise Refused("weights stored apart belong elsewhere", end)
            held = apart[1]
            blocks.append(data[held : held + size])
            starts.append(held)
            crc = zlib.crc32(blocks[-1] + bytes(_align(size) - size), zlib.crc32(data[start:at]))
            summed = at
            continue
        if at + size > end - _CHECKSUM:
            raise Refused("a payload ends inside a block", at)
        blocks.append(data[at : at + size])
        starts.append(at)
        at += _align(size)
    if zlib.crc32(data[summed : end - _CHECKSUM], crc) != int.from_bytes(data[end - _CHECKSUM : end], "little"):
        raise Refused("the payload's checksum is wrong", end - _CHECKSUM)
    every = tuple(data[maps : maps + given + made])
    return Delegate(
        (blocks[0], blocks[1], blocks[2]), (starts[0], starts[1], starts[2]), every[:given], every[given:], maps, end
    )


def _align(size: int) -> int:
    return -(-size // 16) * 16
