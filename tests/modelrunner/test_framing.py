from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.modelrunner.framing import Command, Frame, FrameReader, crc16, encode

INFO = bytes.fromhex(
    "01 01 04 01 00 00 00 03 00 00 00 20 00 00 00 20 00 00 00 00 02 03 01 00 0c 00 00 01 01 02 01 00 00 00 0a 00 00 00"
    "00 01 0a 00 00 00"
)
RESULT = bytes.fromhex("50 03 00 00 00 00 00 00 01 01 02 01 00 00 00 02 00 00 00 02 00 00 00 7f 80")
VECTORS = {
    "get info": (Command.GET_INFO, b"", "55 aa 04 00 00 00 00 0a 98"),
    "run": (Command.RUN, b"", "55 aa 03 00 00 00 00 de ff"),
    "load input": (Command.LOAD_INPUT, bytes(range(4)), "55 aa 02 04 00 00 00 00 01 02 03 49 b0"),
    "ok": (Command.OK, b"", "55 aa 81 00 00 00 00 8d 99"),
    "no model": (Command.INFO, b"", "55 aa 82 00 00 00 00 5f 77"),
    "wrong crc": (Command.ERROR, b"\x01", "55 aa c0 01 00 00 00 01 50 0a"),
    "error": (Command.ERROR, b"\x08no model", "55 aa c0 09 00 00 00 08 6e 6f 20 6d 6f 64 65 6c fb 06"),
    "info": (Command.INFO, INFO, "55 aa 82 2c 00 00 00" + INFO.hex() + "fd 1c"),
    "result": (Command.RESULT, RESULT, "55 aa 83 19 00 00 00" + RESULT.hex() + "54 79"),
}


def read(data: bytes, most: int = 1 << 20) -> tuple[list[Frame], FrameReader]:
    reader, found = FrameReader(most), []
    reader.feed(data)
    while (frame := reader.next_frame()) is not None:
        found.append(frame)
    return found, reader


def test_the_crc_has_its_check_value() -> None:
    assert crc16(b"123456789") == 0x29B1


@pytest.mark.parametrize(("command", "payload", "wanted"), VECTORS.values(), ids=VECTORS)
def test_frames_are_the_published_bytes(command: Command, payload: bytes, wanted: str) -> None:
    assert encode(command, payload) == bytes.fromhex(wanted)
    assert read(encode(command, payload))[0] == [Frame(command, payload)]


@given(st.binary(max_size=40), st.binary(max_size=40), st.lists(st.integers(1, 9), max_size=9))
def test_frames_come_whole_in_any_pieces(first: bytes, second: bytes, cuts: list[int]) -> None:
    data = encode(1, first) + encode(2, second)
    reader, found = FrameReader(), []
    for cut in [*cuts, len(data)]:
        piece, data = data[:cut], data[cut:]
        reader.feed(piece)
        while (frame := reader.next_frame()) is not None:
            found.append(frame)
    assert found == [Frame(1, first), Frame(2, second)]


def test_noise_before_a_frame_is_dropped_and_a_doubled_sync_byte_is_no_obstacle() -> None:
    found, reader = read(b"\r\nReady\r\n\x55" + encode(Command.OK))
    assert found == [Frame(Command.OK, b"")]
    assert b"Ready" in reader.noise


def test_a_frame_behind_a_damaged_one_is_found_even_inside_its_announced_length() -> None:
    damaged = bytearray(encode(Command.RESULT, b"abc"))
    damaged[3] = 200  # a length that reaches over the next frame
    reader = FrameReader()
    reader.feed(bytes(damaged) + encode(Command.OK))
    assert reader.next_frame() is None and reader.waiting
    assert reader.give_up() == Frame(Command.OK, b"")
    assert reader.damaged


def test_an_impossible_length_is_noise() -> None:
    assert read(b"\x55\xaa\x83\xff\xff\xff\xff" + encode(Command.OK))[0] == [Frame(Command.OK, b"")]


@given(st.binary(min_size=1, max_size=30), st.data())
def test_no_flipped_bit_passes(payload: bytes, data: st.DataObject) -> None:
    frame = bytearray(encode(Command.RESULT, payload))
    at = data.draw(st.integers(0, 8 * len(frame) - 1))
    frame[at // 8] ^= 1 << at % 8
    found, reader = read(bytes(frame))
    assert found == [] and reader.give_up() is None


def test_giving_up_on_an_endless_stream_of_sync_bytes_ends() -> None:
    reader = FrameReader()
    reader.feed(b"\x55\xaa" * 2_000)
    assert reader.next_frame() is None and reader.give_up() is None
    assert len(reader.noise) <= 256
