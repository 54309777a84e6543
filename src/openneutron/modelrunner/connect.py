"""Opening a connection to whatever runner listens on a port."""

from __future__ import annotations

import time

from openneutron.errors import BoardError, OptionError
from openneutron.modelrunner.answers import Runner
from openneutron.modelrunner.executorch_uart import FramedRunner
from openneutron.modelrunner.framing import Command, FrameReader, encode
from openneutron.modelrunner.tflm_http import HttpRunner
from openneutron.modelrunner.tflm_uart import PROMPT, ConsoleRunner
from openneutron.modelrunner.transport import BAUD, Transport, drain, open_transport

AUTO, EXECUTORCH, TFLM = "auto", "executorch", "tflm"
PROTOCOLS = (AUTO, EXECUTORCH, TFLM)
_DETECT_SECONDS = 3.0
_SILENCE = 0.2
_START_UP = 5.0


def connect(port: str, *, protocol: str = AUTO, baud: int = BAUD) -> Runner:
    """Connect to a runner: `http://…` is TFLM's over HTTP, everything else a serial port or a socket.

    With the protocol "auto", the board is asked in both serial protocols at once, which neither takes amiss.

    Example:
        >>> connect("socket://localhost:3456").protocol
        'executorch_modelrunner'
    """
    if protocol not in PROTOCOLS:
        raise OptionError(f"--protocol is {protocol!r}", hint=f"one of {', '.join(PROTOCOLS)}")
    if port.startswith("http://"):
        if protocol == EXECUTORCH:
            raise OptionError("executorch_modelrunner has no HTTP", where=port, hint="name its serial port")
        return HttpRunner(port)
    transport = open_transport(port, baud)
    try:
        found = detect(transport) if protocol == AUTO else protocol
        return FramedRunner(transport) if found == EXECUTORCH else ConsoleRunner(transport)
    except BaseException:
        transport.close()
        raise


def detect(transport: Transport, seconds: float = _DETECT_SECONDS) -> str:
    """Return which protocol the board speaks, by a line end and a frame: one gives a prompt, the other an answer."""
    drain(transport, silence=_SILENCE, most_seconds=_START_UP)
    reader, text = FrameReader(), bytearray()
    transport.write(b"\r" + encode(Command.GET_INFO), seconds)
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        data = transport.read(1 << 12, left)
        reader.feed(data)
        text += data
        frame = reader.next_frame()
        if frame is not None and frame.command in (Command.INFO, Command.ERROR):
            return EXECUTORCH
        if PROMPT in text:
            return TFLM
    raise BoardError(
        f"the board speaks neither protocol: {len(text)} bytes came within {seconds:g} s", where=transport.name,
        hint="reset the board; is one of NXP's model runners on it, and is the speed right (--baud)? "
        "--protocol skips the question",
    )  # fmt: skip
