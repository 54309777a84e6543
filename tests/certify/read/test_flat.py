"""The FlatBuffers reader refuses a file of which a byte was not read, or was read as two things."""

from __future__ import annotations

import flatbuffers
import numpy as np
import pytest

from openneutron.certify.read.flat import Table, root
from openneutron.certify.refused import Refused


def file() -> bytearray:
    """A table of a number, a string, a vector and a table with a flag."""
    b = flatbuffers.Builder(0)
    text = b.CreateString("name")
    numbers = b.CreateNumpyVector(np.array([1, 2, 3], np.int32))
    b.StartObject(1)
    b.PrependBoolSlot(0, True, False)
    inner = b.EndObject()
    b.StartObject(4)
    b.PrependUint32Slot(0, 7, 0)
    b.PrependUOffsetTRelativeSlot(1, text, 0)
    b.PrependUOffsetTRelativeSlot(2, numbers, 0)
    b.PrependUOffsetTRelativeSlot(3, inner, 0)
    b.Finish(b.EndObject(), b"TEST")
    return bytearray(b.Output())


def read_all(table: Table, *, but: int = -1) -> list[object]:
    inner = None if but == 3 else table.table(3, "the inner table")
    return [
        None if but == 0 else table.scalar(0, "I", 0),
        None if but == 1 else table.text(1),
        None if but == 2 else table.vector(2, "i"),
        inner.scalar(0, "?", False) if inner else None,
    ]


def test_all_that_is_there_is_read() -> None:
    table = root(bytes(file()), b"TEST", "the root")
    assert read_all(table) == [7, b"name", (1, 2, 3), True]
    assert table.scalar(9, "I", 5) == 5 and not table.has(9) and table.text(9) == b"" and table.tables(9, "x") == []
    table.ledger.close()


@pytest.mark.parametrize("but", range(4))
def test_a_field_that_nobody_reads_is_refused(but: int) -> None:
    table = root(bytes(file()), b"TEST", "the root")
    read_all(table, but=but)
    with pytest.raises(Refused, match=f"field {but} of the root is none that the checker reads"):
        table.ledger.close()


def test_bytes_behind_the_file_are_refused() -> None:
    for extra, fine in ((b"\0" * 8, True), (b"\0\0\1", False), (bytes(80), False)):
        table = root(bytes(file()) + extra, b"TEST", "the root")
        read_all(table)
        if fine:
            table.ledger.close()
        else:
            with pytest.raises(Refused, match="bytes that belong to nothing"):
                table.ledger.close()


def test_a_field_is_read_in_one_way() -> None:
    table = root(bytes(file()), b"TEST", "the root")
    table.scalar(0, "I", 0)
    with pytest.raises(Refused, match="field 0 of the root is read in two ways"):
        table.scalar(0, "H", 0)
    with pytest.raises(Refused, match="lies on"):
        Table(table.ledger, table.position, "something else")


def test_a_flag_is_zero_or_one_and_a_vector_stays_inside() -> None:
    data = file()
    table = root(bytes(data), b"TEST", "the root")
    inner = table.table(3, "the inner table")
    assert inner is not None
    data[inner.position + inner.fields.places[0]] = 2
    inner = root(bytes(data), b"TEST", "the root").table(3, "the inner table")
    assert inner is not None
    with pytest.raises(Refused, match="neither true nor false"):
        inner.scalar(0, "?", False)
    at = table.target(2)
    data[at : at + 4] = b"\xff\xff\xff\x7f"
    with pytest.raises(Refused, match="leaves the file"):
        root(bytes(data), b"TEST", "the root").vector(2, "i")


def test_every_cut_file_is_refused() -> None:
    whole = bytes(file())
    for size in range(len(whole.rstrip(b"\0"))):  # behind that is padding
        with pytest.raises(Refused):
            read_all(root(whole[:size], b"TEST", "the root"))
