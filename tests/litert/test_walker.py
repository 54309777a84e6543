import struct

import pytest

from openneutron.errors import FormatError
from openneutron.litert.walker import Walker


def file(
    *, soffset: int = 8, vtable: bytes = struct.pack("<4H", 8, 12, 4, 8), body: bytes = b"\5\0\0\0\4\0\0\0"
) -> bytes:
    """Root offset, identifier, vtable, table with a word (slot 0) and an offset (slot 1), then a vector."""
    vector = struct.pack("<I3H2x", 3, 7, 8, 9)
    return struct.pack("<I4s", 16, b"TFL3") + vtable + struct.pack("<i", soffset) + body + vector


def test_reads_scalars_and_vectors():
    table = Walker(file(), "f").root(b"TFL3")
    assert table.u32(0) == 5
    assert table.values(1, "<u2") == [7, 8, 9]
    assert table.u32(2, 77) == 77
    assert not table.vector(1, "<u2").flags.writeable


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "f, byte 0: the file has 0 bytes"),
        (b"\0\0\0\0TFL2", "byte 4: the file identifier is b'TFL2'"),
        (b"\xff\xff\xff\xffTFL3", "model, byte 4294967295: a table lies outside"),
        (b"\0\0\0\0TFL3", "model, byte 0: a table lies outside"),
        (file(soffset=-900), "vtable at byte 916 lies outside"),
        (file(soffset=900), "vtable at byte -884 lies outside"),
        (file(vtable=struct.pack("<4H", 2, 12, 4, 8)), "impossible length 2"),
        (file(vtable=struct.pack("<4H", 7, 12, 4, 8)), "impossible length 7"),
        (file(vtable=struct.pack("<4H", 65534, 12, 4, 8)), "impossible length 65534"),
        (file(vtable=struct.pack("<4H", 8, 60000, 4, 8)), "gives the table 60000 bytes"),
    ],
)
def test_refuses_broken_tables(data, message):
    with pytest.raises(FormatError) as caught:
        Walker(data, "f").root(b"TFL3")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (file(vtable=struct.pack("<4H", 8, 12, 4, 10)), "field 1 at offset 10 lies outside its table"),
        (file(vtable=struct.pack("<4H", 8, 12, 4, 2)), "field 1 at offset 2 lies outside its table"),
        (file(body=b"\5\0\0\0\xff\xff\xff\xff"), "a vector lies outside the file"),
        (file()[:28] + b"\xff\xff\xff\x7f" + file()[32:], "a vector of 2147483647 elements runs past the end"),
    ],
)
def test_refuses_broken_fields(data, message):
    table = Walker(data, "f").root(b"TFL3")
    with pytest.raises(FormatError) as caught:
        table.values(1, "<u2")
    assert message in str(caught.value)


def test_budget_stops_overlapping_reads():
    data = file() + bytes(1 << 20)
    walker = Walker(data, "f")
    with pytest.raises(FormatError, match="overlap far beyond its size"):
        for start in range(1000):
            walker.spend(1 << 19, "here", start)


def test_tables_without_end_are_refused():
    data = file()[:28] + struct.pack("<I", 200_000) + bytes(800_000)
    walker = Walker(data, "f")
    table = walker.root(b"TFL3")
    with pytest.raises(FormatError, match="a vector names 200000 tables"):
        table.positions(1)
    with pytest.raises(FormatError, match="the file has more than 131072 tables"):
        for _ in range(200_000):
            walker.table(16, "again")


def test_text_that_is_not_utf8_is_escaped():
    data = file(body=b"\5\0\0\0\4\0\0\0")[:28] + struct.pack("<I", 2) + b"a\xff\0\0"
    assert Walker(data, "f").root(b"TFL3").text(1) == "a\\xff"
