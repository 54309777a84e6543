"""A board under QEMU: an image of a model runner whose serial port is a TCP socket, with noise on the line if wanted."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from openneutron.errors import BoardError
from openneutron.modelrunner.transport import SocketTransport, drain
from tests.firmware.image import CPU

_START_SECONDS = 300
_PORTS = 5  # tried one after the other: another program may take one that was free a moment ago


class Board:
    """QEMU with a runner; `url` is its serial port."""

    def __init__(self, image: Path) -> None:
        for _ in range(_PORTS):
            if self._starts(image):
                return
        raise AssertionError("QEMU does not listen")

    def _starts(self, image: Path) -> bool:
        """Start QEMU and wait for the runner's first line; False where QEMU ended, as it does when its port is taken."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"socket://127.0.0.1:{port}"
        serial = f"tcp:127.0.0.1:{port},server=on"  # it starts with the first connection
        machine = ["qemu-system-arm", "-M", "mps2-an505", "-cpu", CPU, "-display", "none", "-semihosting"]
        self.process = subprocess.Popen(
            [*machine, "-kernel", str(image), "-serial", serial, "-monitor", "stdio"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        end = time.monotonic() + _START_SECONDS
        while (line := self._connected()) is None:
            if self.process.poll() is not None:
                self.close()
                return False
            assert time.monotonic() < end, "QEMU does not listen"
            time.sleep(0.02)
        found = b""
        while b"odelrunner" not in found:
            assert time.monotonic() < end, "the board does not start"
            found += line.read(256, 1.0)
        drain(line, silence=0.05, most_seconds=1.0)
        line.close()
        return True

    def _connected(self) -> SocketTransport | None:
        try:
            return SocketTransport(self.url)
        except BoardError:
            return None

    def reset(self) -> None:
        """Reset the machine as its button would."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"system_reset\n")
        self.process.stdin.flush()

    def freeze(self) -> None:
        """Stop the board from taking or sending anything."""
        self.process.send_signal(signal.SIGSTOP)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


class NoisyTransport(SocketTransport):
    """A connection that may change what is sent and received; `noisy` of the fakes makes such changes.

    The board is expected to be faster than a serial line, so that nobody waits long for it.
    """

    def __init__(
        self, url: str, to_board: Callable[[bytes], bytes] = bytes, to_host: Callable[[bytes], bytes] = bytes
    ) -> None:
        super().__init__(url)
        self.bytes_per_second = 1e6
        self.to_board, self.to_host = to_board, to_host

    def read(self, most: int, seconds: float) -> bytes:
        return self.to_host(super().read(most, seconds))

    def write(self, data: bytes, seconds: float) -> None:
        super().write(self.to_board(data), seconds)
