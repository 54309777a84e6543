"""Frames of `executorch_modelrunner`: `55 AA | command | length u32 | payload | CRC-16`, little endian.

The CRC is CCITT-FALSE (polynomial 0x1021, initial value 0xFFFF) over everything between the sync bytes and itself.

Example:
    >>> encode(Command.GET_INFO).hex(" ")
    '55 aa 04 00 00 00 00 0a 98'
"""

from __future__ import annotations

import binascii
import struct
from dataclasses import dataclass
from enum import IntEnum

SYNC = b"\x55\xaa"
LARGEST_PAYLOAD = 1_048_576  # the receive buffer of NXP's runner; longer frames get no answer at all
_HEAD = struct.Struct("<2sBI")
_CRC = struct.Struct("<H")
FRAME_BYTES = _HEAD.size + _CRC.size  # without a payload
_MOST_DAMAGED = 256


class Command(IntEnum):
    """What a host asks, and what a board answers."""

    LOAD_MODEL = 0x01
    LOAD_INPUT = 0x02
    RUN = 0x03
    GET_INFO = 0x04
    OK = 0x81
    INFO = 0x82
    RESULT = 0x83
    ERROR = 0xC0


@dataclass(frozen=True)
class Frame:
    """A frame with a right CRC; `command` may be a number that `Command` does not list."""

    command: int
    payload: bytes


def crc16(data: bytes) -> int:
    """Return the CRC-16/CCITT-FALSE of the data.

    Example:
        >>> hex(crc16(b"123456789"))
        '0x29b1'
    """
    return binascii.crc_hqx(data, 0xFFFF)


def encode(command: int, payload: bytes = b"") -> bytes:
    """Return the bytes of a frame."""
    body = _HEAD.pack(SYNC, command, len(payload)) + payload
    return body + _CRC.pack(crc16(body[len(SYNC) :]))


class FrameReader:
    """Finds frames in a stream that may hold noise.

    A frame with a wrong CRC or an impossible length is taken for noise: the search goes on one byte behind its first sync
    byte, so a frame that begins inside it is still found. `noise` keeps the end of what was dropped, `damaged` counts frames
    with a wrong CRC.
    """

    def __init__(self, most: int = LARGEST_PAYLOAD) -> None:
        self._most = most
        self._buffer = bytearray()
        self.noise = bytearray()
        self.damaged = 0

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        self._buffer += data

    def next_frame(self) -> Frame | None:
        """Return the next whole frame; None when more bytes are needed."""
        while True:
            self._hunt()
            if len(self._buffer) < _HEAD.size:
                return None
            _, command, size = _HEAD.unpack_from(self._buffer)
            if size > self._most:
                self._drop(1)
                continue
            end = _HEAD.size + size
            if len(self._buffer) < end + _CRC.size:
                return None
            (found,) = _CRC.unpack_from(self._buffer, end)
            if found != crc16(bytes(self._buffer[len(SYNC) : end])):
                self.damaged += 1
                # So many damaged frames are no frames, and each costs a checksum over its length.
                self._drop(1 if self.damaged < _MOST_DAMAGED else len(self._buffer))
                continue
            payload = bytes(self._buffer[_HEAD.size : end])
            del self._buffer[: end + _CRC.size]
            return Frame(command, payload)

    def give_up(self) -> Frame | None:
        """Drop a frame that began and will not end, because its length was damaged; return the next one behind it."""
        while len(self._buffer) >= len(SYNC):
            self.damaged += 1
            self._drop(1)
            found = self.next_frame()
            if found is not None:
                return found
        return None

    @property
    def waiting(self) -> bool:
        """Whether a frame has begun and is not whole."""
        return bool(self._buffer)

    def _hunt(self) -> None:
        """Drop bytes up to the next sync; a lone first sync byte at the end may still become one."""
        at = self._buffer.find(SYNC)
        if at < 0:
            at = len(self._buffer) - self._buffer.endswith(SYNC[:1])
        self._drop(at)

    def _drop(self, count: int) -> None:
        self.noise += self._buffer[:count]
        del self._buffer[:count]
        del self.noise[:-256]  # enough for a start-up line
