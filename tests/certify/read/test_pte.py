"""Delegates of a `.pte`: payloads are found inline and in segments, and refused where they leave the file."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import flatbuffers
import pytest

from openneutron.certify.read.pte import delegates, frame
from openneutron.certify.refused import Refused


def payload() -> bytes:
    """Arguments 1 and 0 as inputs, one result, and three blocks whose sizes the first one states."""
    microcode = bytearray(b"m" * 48)
    struct.pack_into("<3I", microcode, 24, 48, 8, 4)
    return bytes([2, 1, 0, 0, 0, 0, 1, 0, 0]).ljust(16, b"\0") + microcode + b"weights!".ljust(16, b"\0") + bytes(16)


def program(data: bytes, backend: str = "NeutronBackend") -> bytes:
    """A program with one plan and one delegate, whose payload is inline."""
    b: Any = flatbuffers.Builder(0)

    def vector(*items: int) -> Any:
        b.StartVector(4, len(items), 4)
        for item in reversed(items):
            b.PrependUOffsetTRelative(item)
        return b.EndVector()

    def table(**fields: Any) -> Any:
        b.StartObject(10)
        for slot, value in fields.items():
            b.PrependUOffsetTRelativeSlot(int(slot[1:]), value, 0)
        return b.EndObject()

    name, bytes_ = b.CreateString(backend), b.CreateByteVector(data)
    inline = table(_0=bytes_)
    b.StartObject(2)
    b.PrependInt8Slot(0, 0, 0)
    reference = b.EndObject()
    plan = table(_7=vector(table(_0=name, _1=reference)))
    b.Finish(table(_1=vector(plan), _3=vector(inline)), b"ET12")
    return bytes(b.Output())


def seal(data: bytes) -> bytes:
    return data + zlib.crc32(data).to_bytes(4, "little")


def test_a_program_of_others_has_no_delegate_of_ours() -> None:
    assert delegates(program(b"abc", backend="XnnpackBackend")) == []


def test_a_payload_is_found_with_its_maps_and_blocks() -> None:
    data = program(seal(payload()))
    (found,) = delegates(data)
    assert (found.inputs, found.outputs) == ((1, 0), (0,))
    assert found.blocks[1:] == (b"weights!", bytes(4)) and len(found.blocks[0]) == 48
    assert [data[at : at + 4] for at in found.starts[:2]] == [b"mmmm", b"weig"]
    assert data[found.maps : found.maps + 3] == b"\1\0\0"
    hidden = frame(data, [found])
    assert len(hidden) == len(data) and b"weights!" not in hidden and hidden[: found.maps + 3] == data[: found.maps + 3]


@pytest.mark.parametrize(
    ("data", "why"),
    [(b"", "a payload is empty"), (b"\2\1\0\1\0", "ends inside its header"),
     (payload()[:60], "ends inside a block"), (seal(payload())[:-1] + b"\0", "checksum is wrong")],
)  # fmt: skip
def test_a_payload_that_ends_too_early_or_has_another_checksum_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(Refused, match=why):
        delegates(program(data))


@pytest.mark.parametrize("data", [b"", b"1234ET12", b"\x10\0\0\0ET12" + bytes(8), b"\x08\0\0\0TFL3" + bytes(16)])
def test_what_is_no_program_is_refused(data: bytes) -> None:
    with pytest.raises(Refused):
        delegates(data)
