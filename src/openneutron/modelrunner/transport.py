"""Byte streams to a board: a serial port, or a TCP socket such as QEMU's.

Every read and write has a time limit, so nothing above can hang.

Example:
    >>> stream = open_transport("socket://localhost:3456")
    >>> stream.write(b"\\r", seconds=1.0)
    >>> stream.read(16, seconds=0.5)
    b'\\r\\n=> '
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from collections.abc import Iterator
from typing import Any, Protocol
from urllib.parse import urlsplit

from openneutron.errors import BoardError, OptionError
from openneutron.extras import extra

BAUD = 115_200  # of both runners
_CONNECT_SECONDS = 5.0
_LARGEST_READ = 65_536


class Transport(Protocol):
    """A stream of bytes in both directions; `name` is the port, for messages.

    `paced` says that the other side delays the sender until it has taken what was sent.
    """

    name: str
    bytes_per_second: float
    paced: bool

    def read(self, most: int, seconds: float) -> bytes:
        """Return what arrives first within the time, at most so many bytes; b"" when nothing does."""
        ...

    def write(self, data: bytes, seconds: float) -> None:
        """Write all of the data within the time, or raise a `BoardError`."""
        ...

    def close(self) -> None:
        """Give the port back."""
        ...


def open_transport(port: str, baud: int = BAUD) -> Transport:
    """Open a serial port by its path or URL.

    `socket://host:port` is a plain TCP connection. Everything else goes to pyserial: device names, and URLs such as
    `rfc2217://host:port`.
    """
    if port.startswith("socket://"):
        return SocketTransport(port)
    return SerialTransport(port, baud)


class SocketTransport:
    """A TCP connection, for QEMU's serial ports and for serial servers."""

    def __init__(self, url: str) -> None:
        self.name = url
        self.bytes_per_second = BAUD / 10  # a serial line may be behind it, and QEMU's is as slow on a busy machine
        self.paced = True
        host, port = _address(url)
        try:
            self._socket = socket.create_connection((host, port), timeout=_CONNECT_SECONDS)
        except OSError as error:
            raise BoardError(
                f"nothing answers there ({error.strerror or error})", where=url, hint="is the board or QEMU running?"
            ) from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def read(self, most: int, seconds: float) -> bytes:
        """Return what arrives first within the time; a closed connection is an error."""
        with _port_errors(self.name):
            if not select.select([self._socket], [], [], max(seconds, 0.0))[0]:
                return b""
            data = self._socket.recv(min(most, _LARGEST_READ))
        if not data:
            raise BoardError("the other side closed the connection", where=self.name, hint="start the board anew")
        return data

    def write(self, data: bytes, seconds: float) -> None:
        """Send all of the data within the time."""
        with _port_errors(self.name):
            self._socket.settimeout(max(seconds, 0.001))
            self._socket.sendall(data)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


class SerialTransport:
    """A serial port by way of pyserial: 8 data bits, no parity, one stop bit, no flow control."""

    def __init__(self, port: str, baud: int) -> None:
        with extra("a serial port"):
            import serial
        self.name = port
        self.bytes_per_second = baud / 10  # start bit, eight data bits, stop bit
        self.paced = False
        try:
            self._port: Any = serial.serial_for_url(port, baudrate=baud, timeout=0, write_timeout=None)
        except (serial.SerialException, OSError, ValueError) as error:
            raise BoardError(
                f"the port cannot be opened ({_plain(error)})", where=port, hint=_port_hint(port)
            ) from None

    def read(self, most: int, seconds: float) -> bytes:
        """Return what arrives first within the time."""
        with _port_errors(self.name):
            waiting = min(self._port.in_waiting, most)
            if waiting:
                return bytes(self._port.read(waiting))
            if seconds <= 0:
                return b""
            self._port.timeout = seconds
            first = bytes(self._port.read(1))
            waiting = min(self._port.in_waiting, most - 1) if first else 0
            return first + (bytes(self._port.read(waiting)) if waiting else b"")

    def write(self, data: bytes, seconds: float) -> None:
        """Write all of the data within the time."""
        with _port_errors(self.name):
            self._port.write_timeout = max(seconds, 0.001)
            self._port.write(data)

    def close(self) -> None:
        """Close the port."""
        self._port.close()


def drain(transport: Transport, *, silence: float, most_seconds: float) -> bytes:
    """Read until the board has been silent for a while; return what it sent, bounded by the time in all."""
    found = bytearray()
    end = time.monotonic() + most_seconds
    while time.monotonic() < end:
        piece = transport.read(_LARGEST_READ, min(silence, end - time.monotonic()))
        if not piece:
            break
        found += piece
    return bytes(found)


@contextlib.contextmanager
def _port_errors(name: str) -> Iterator[None]:
    """Turn errors of the operating system and of pyserial, which are OSErrors too, into a sentence."""
    try:
        yield
    except TimeoutError:
        raise BoardError("the port takes no more bytes", where=name, hint="reset the board, then try again") from None
    except (OSError, TypeError) as error:  # pyserial raises TypeError when the device vanishes during a read
        raise BoardError(f"the port failed ({_plain(error)})", where=name, hint="is the cable still there?") from None


def _address(url: str) -> tuple[str, int]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or port is None:
        raise OptionError("it names no host and port", where=url, hint="write socket://localhost:3456")
    return host, port


def _plain(error: Exception) -> str:
    number = getattr(error, "errno", None)
    return " ".join((os.strerror(number) if number else str(error)).split()) or type(error).__name__


def _port_hint(port: str) -> str:
    try:
        from serial.tools.list_ports import comports

        found = sorted(one.device for one in comports())
    except (ImportError, OSError):
        found = []
    listed = f"ports here: {', '.join(found)}" if found else "this machine has no serial port"
    return f"{listed}; a simulated board is socket://host:port"
