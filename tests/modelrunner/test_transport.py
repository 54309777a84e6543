from __future__ import annotations

import os
import socket
import time
import tty

import pytest

from openneutron.errors import BoardError, OptionError
from openneutron.modelrunner.transport import SerialTransport, drain, open_transport


def test_a_socket_is_read_within_its_time_and_says_when_it_closes() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = open_transport(f"socket://127.0.0.1:{server.getsockname()[1]}")
        peer, _ = server.accept()
        began = time.monotonic()
        assert port.read(10, 0.05) == b"" and time.monotonic() - began < 60
        port.write(b"abc", 1.0)
        assert peer.recv(10) == b"abc"
        peer.sendall(b"x" * 100)
        assert drain(port, silence=0.05, most_seconds=2.0) == b"x" * 100
        peer.close()
        with pytest.raises(BoardError, match="closed the connection"):
            port.read(10, 1.0)
        port.close()


def test_a_write_that_nobody_takes_ends() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = open_transport(f"socket://127.0.0.1:{server.getsockname()[1]}")
        peer, _ = server.accept()
        with pytest.raises(BoardError, match="takes no more bytes"):
            port.write(bytes(1 << 26), 0.05)
        port.close()
        peer.close()


def test_a_serial_port_is_opened_by_pyserial() -> None:
    master, slave = os.openpty()
    tty.setraw(slave)
    port = open_transport(os.ttyname(slave), 115_200)
    assert isinstance(port, SerialTransport) and port.bytes_per_second == 11_520
    port.write(b"abc", 1.0)
    assert os.read(master, 10) == b"abc"
    assert port.read(10, 0.01) == b""
    os.write(master, b"0123456789")
    assert drain(port, silence=0.05, most_seconds=2.0) == b"0123456789"
    os.write(master, b"0123")
    time.sleep(0.02)
    assert port.read(2, 1.0) == b"01"
    port.close()
    os.close(master)
    os.close(slave)


def test_an_unplugged_port_is_a_sentence() -> None:
    master, slave = os.openpty()
    tty.setraw(slave)
    port = open_transport(os.ttyname(slave))
    os.close(master)
    with pytest.raises(BoardError, match="the port failed"):
        for _ in range(3):
            port.read(10, 0.2)
    port.close()
    os.close(slave)


@pytest.mark.parametrize(
    ("port", "error", "message"),
    [
        ("/dev/no-such-port", BoardError, "cannot be opened"),
        ("nonsense://x", BoardError, "cannot be opened"),
        ("socket://127.0.0.1:1", BoardError, "nothing answers there"),
        ("socket://host", OptionError, "names no host and port"),
        ("socket://host:port", OptionError, "names no host and port"),
    ],
)
def test_ports_that_cannot_be_opened(port: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        open_transport(port)
