"""The checker's own look into a `.pte`: the three blocks of each Neutron delegate."""

from __future__ import annotations

import struct

from openneutron.certify.read.flat import Table, root
from openneutron.certify.refused import Refused

_BACKEND = b"NeutronBackend"
_EXTENDED = struct.Struct("<4sIQQ")  # at byte 8: magic, length, program bytes, where segments begin


def delegates(data: bytes) -> list[tuple[bytes, bytes, bytes]]:
    """Microcode, weights and kernels of each delegate, in the order of the program."""
    program = root(data, data[4:8] if data[4:6] == b"ET" else b"ET12")
    plans = program.tables(1)
    if not plans:
        raise Refused("the program has no plan", program.position)
    return [_blocks(_payload(data, program, one)) for one in plans[0].tables(7) if one.text(0) == _BACKEND]


def _payload(data: bytes, program: Table, delegate: Table) -> bytes:
    reference = delegate.table(1)
    if reference is None:
        raise Refused("a delegate has no data", delegate.position)
    segment, index = reference.scalar(0, "b", 0), reference.scalar(1, "I", 0)
    holders = program.tables(4 if segment else 3)
    if index >= len(holders):
        raise Refused(f"a delegate's data is number {index} of {len(holders)}", reference.position)
    if not segment:
        return bytes(holders[index].text(0))
    magic, _, _, base = _EXTENDED.unpack_from(data, 8) if len(data) >= 8 + _EXTENDED.size else (b"", 0, 0, 0)
    if magic != b"eh00":
        raise Refused("segments without a header that says where they begin", 8)
    start, size = int(base + holders[index].scalar(0, "Q", 0)), int(holders[index].scalar(1, "Q", 0))
    if start + size > len(data):
        raise Refused("a segment leaves the file", holders[index].position)
    return bytes(data[start : start + size])


def _blocks(payload: bytes) -> tuple[bytes, bytes, bytes]:
    if len(payload) < 3:
        raise Refused("a payload is empty")
    at = _aligned(4 + 2 * (payload[0] + payload[1]))
    if at + 36 > len(payload):
        raise Refused("a payload ends inside its header", len(payload))
    sizes = struct.unpack_from("<3I", payload, at + 24)
    found = []
    for size in sizes:
        if at + size > len(payload):
            raise Refused("a payload ends inside a block", at)
        found.append(payload[at : at + size])
        at += _aligned(size)
    return found[0], found[1], found[2]


def _aligned(size: int) -> int:
    return -(-size // 16) * 16
