"""Client of `executorch_modelrunner`: frames over a serial port.

Noise is survived: a damaged answer is asked for again, a damaged request is sent again, and a board that waits for the rest of
a request that lost bytes gets filler until it answers. The number of attempts and all times are bounded.

Example:
    >>> with FramedRunner(open_transport("/dev/ttyACM0")) as runner:
    ...     runner.load_model(pte)
    ...     runner.run([image.tobytes()]).microseconds
"""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass

from openneutron.errors import BoardError, OptionError
from openneutron.microcode.pte import DTYPES
from openneutron.modelrunner.answers import (
    BoardModel,
    BoardOutput,
    BoardRun,
    BoardTensor,
    Progress,
    check_bytes,
    no_progress,
    report_progress,
)
from openneutron.modelrunner.framing import FRAME_BYTES, LARGEST_PAYLOAD, Command, Frame, FrameReader, encode
from openneutron.modelrunner.transport import Transport, drain

BANNER = b"Modelrunner Ready"  # the only text a board ever prints, once after a reset
_DAMAGED_REQUEST, _UNKNOWN_COMMAND, _TOO_LARGE = 0x01, 0x02, 0x03
_BAD_INPUT, _RUN_FAILED, _WRONG_STATE = 0x05, 0x07, 0x08
_PROGRAM, _METHOD, _METADATA, _MEMORY, _LOAD = 0x10, 0x11, 0x12, 0x13, 0x14
REASONS = {
    _UNKNOWN_COMMAND: (
        "the board does not know this command",
        "its firmware speaks another version of the protocol",
    ),
    _TOO_LARGE: (
        "the model is larger than the board's buffer for it",
        "choose a smaller model, or build the runner with a larger buffer",
    ),
    _BAD_INPUT: (
        "the board refused the input: its size is not that of the model's first input",
        "give an input of the model's type and shape",
    ),
    _RUN_FAILED: (
        "the run failed on the board, or its outputs are larger than the board's buffer",
        "run the model here first: `openneutron run`",
    ),
    _WRONG_STATE: ("the board has no model, or no input", "load them again"),
    _PROGRAM: (
        "the board does not take this file as a program",
        "NXP's runner takes a .pte that NXP's converter made, the open runtime's image takes open microcode",
    ),
    _METHOD: ("the program has no method that the board can find", "export it with a `forward`"),
    _METADATA: (
        "the board cannot read what the program says of its method",
        "export it with the ExecuTorch release of the board's SDK",
    ),
    _MEMORY: (
        "the program's planned memory is larger than the board's pool",
        "`openneutron inspect` shows the planned bytes; choose a smaller model or input",
    ),
    _LOAD: (
        "the board refused the program: an operator is not registered there, or the driver refused the microcode",
        "leave no other operators on the CPU, and use the converter of the board's SDK release",
    ),
}
_PIECE = 4_096  # bytes between two progress reports
_FILLER = (64, 4_096, 65_536, 262_144, 720_896)  # together as much as the board's receive buffer can still ask for


@dataclass(frozen=True)
class Patience:
    """How long the client waits, in seconds; `attempts` is how often a request is sent."""

    silence: float = 0.2  # after which nothing more is coming
    gap: float = 0.5  # inside a frame, after which its length must have been damaged
    quiet: float = 5.0  # for the start-up line and other leftovers
    answer: float = 5.0
    load: float = 10.0
    run: float = 30.0
    probe: float = 0.5
    attempts: int = 5


class FramedRunner:
    """A connection to `executorch_modelrunner`, or to an image that answers like it."""

    protocol = "executorch_modelrunner"

    def __init__(self, transport: Transport, patience: Patience | None = None) -> None:
        self._transport = transport
        self._patience = patience or Patience()
        self._reader = FrameReader()
        self._retries = 0
        self._answered = False
        self.where = transport.name
        drain(transport, silence=self._patience.silence, most_seconds=self._patience.quiet)

    def __enter__(self) -> FramedRunner:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the port back."""
        self._transport.close()

    def info(self) -> BoardModel:
        """Describe the loaded model; without tensors when none is loaded, or when its description is over 256 bytes."""
        payload = self._exchange(Command.GET_INFO, b"", Command.INFO, self._patience.answer)
        if not payload:
            return BoardModel((), ())
        fields = _Fields(payload, self.where)
        inputs = tuple(fields.tensor(f"input_{at}") for at in range(fields.u8()))
        outputs = tuple(fields.tensor(f"output_{at}") for at in range(fields.u8()))
        fields.end()
        return BoardModel(inputs, outputs)

    def load_model(self, data: bytes, progress: Progress = no_progress) -> None:
        """Upload a program; the board prepares it before it answers."""
        self._exchange(Command.LOAD_MODEL, data, Command.OK, self._patience.load, progress)

    def run(self, inputs: Sequence[bytes], *, times: int = 1, progress: Progress = no_progress) -> BoardRun:
        """Upload the one input that the protocol can set, and run; the time is the mean of all runs."""
        if len(inputs) != 1:
            raise OptionError(
                f"{len(inputs)} inputs are given, and this runner can set the first input only", where=self.where,
                hint="join the inputs of the model into one, or use tflm_modelrunner",
            )  # fmt: skip
        before, total = self._retries, 0.0
        for number in range(times):
            if times > 1:
                progress(f"running: {number} of {times}")
            outputs, microseconds = self._run_once(inputs[0], progress)
            total += microseconds
        return BoardRun(outputs, total / times, self._retries - before)

    def _run_once(self, data: bytes, progress: Progress) -> tuple[tuple[BoardOutput, ...], float]:
        """Load the input and run; both again when an answer to RUN got lost, because the run used the input up."""
        for attempt in range(self._patience.attempts):
            self._exchange(Command.LOAD_INPUT, data, Command.OK, self._patience.answer, progress)
            try:
                payload = self._exchange(Command.RUN, b"", Command.RESULT, self._patience.run)
            except _Refusal as refusal:
                if refusal.code != _WRONG_STATE or attempt + 1 == self._patience.attempts:
                    raise
                continue
            return self._result(payload)
        raise AssertionError("the last attempt returns or raises")

    def _result(self, payload: bytes) -> tuple[tuple[BoardOutput, ...], float]:
        fields = _Fields(payload, self.where)
        microseconds = float(fields.u64())
        outputs = []
        for at in range(fields.u8()):
            dtype = fields.dtype()
            shape = fields.sizes(fields.u8())
            data = fields.take(fields.u32())
            check_bytes(dtype, shape, len(data), f"output {at}", self.where)
            outputs.append(BoardOutput(f"output_{at}", dtype, shape, data))
        fields.end()
        return tuple(outputs), microseconds

    def _exchange(
        self, command: Command, payload: bytes, wanted: Command, seconds: float, progress: Progress = no_progress
    ) -> bytes:
        """Send a request until its answer comes whole, and return the answer's payload."""
        if len(payload) > LARGEST_PAYLOAD:
            raise BoardError(
                f"{len(payload):,} bytes do not fit the board's receive buffer of {LARGEST_PAYLOAD:,}", where=self.where,
                hint="choose a smaller model; the board would not answer at all",
            )  # fmt: skip
        frame = encode(command, payload)
        what = command.name.lower().replace("_", " ")
        pieces = [frame[at : at + _PIECE] for at in range(0, len(frame), _PIECE)]
        for attempt in range(self._patience.attempts):
            if attempt:
                self._retries += 1
                drain(self._transport, silence=self._patience.silence, most_seconds=self._patience.quiet)
            self._reader = FrameReader()
            for piece in report_progress(pieces, what, progress):
                self._transport.write(piece, 5.0 + 2 * len(piece) / self._transport.bytes_per_second)
            in_flight = len(frame) / self._transport.bytes_per_second
            answer = self._await(wanted, seconds + 1.5 * in_flight)
            if answer is None:
                self._resynchronize()
            elif answer.command == wanted:
                return answer.payload
            elif answer.payload[:1] != bytes([_DAMAGED_REQUEST]):
                raise _Refusal(answer.payload, self.where)
        raise BoardError(
            f"{what} got no whole answer in {self._patience.attempts} attempts", where=self.where,
            hint="the line is too noisy: try another cable or port, or a lower speed with --baud",
        )  # fmt: skip

    def _await(self, wanted: Command, seconds: float) -> Frame | None:
        """Return the wanted answer or an error; None when neither comes in time or the answer came damaged."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            data = self._transport.read(1 << 16, min(left, self._patience.gap))
            self._reader.feed(data)
            frame = self._reader.next_frame()
            if frame is None and not data and self._reader.waiting:
                frame = self._reader.give_up()
            while frame is not None:
                self._answered = True
                if frame.command in (wanted, Command.ERROR):
                    return frame
                frame = self._reader.next_frame()  # the late answer to an earlier attempt
            if BANNER in self._reader.noise:
                raise BoardError(
                    "the board restarted before it answered", where=self.where,
                    hint="its model is gone: check power and watchdog, then run the command again",
                )  # fmt: skip
            if not data and self._reader.damaged:
                return None
        return None

    def _resynchronize(self) -> None:
        """Bring the board back to where it hunts for a frame: it may still wait for bytes that got lost."""
        filler = _FILLER if self._answered else _FILLER[:3]
        for size in (0, *filler):
            for at in range(0, size, _PIECE):
                piece = bytes(min(_PIECE, size - at))
                self._transport.write(piece, 5.0 + 2 * len(piece) / self._transport.bytes_per_second)
            self._reader = FrameReader()
            self._transport.write(encode(Command.GET_INFO), 5.0)
            sent = (size + FRAME_BYTES) / self._transport.bytes_per_second
            if self._await(Command.INFO, self._patience.probe + 1.2 * sent) is not None:
                drain(self._transport, silence=self._patience.silence, most_seconds=self._patience.quiet)
                return
        raise BoardError(
            "the board does not answer", where=self.where,
            hint="reset it; is executorch_modelrunner on it, and is this its port? tflm_modelrunner wants --protocol tflm",
        )  # fmt: skip


class _Refusal(BoardError):
    """The board's ERROR frame as a sentence; `code` is its code."""

    def __init__(self, payload: bytes, where: str) -> None:
        self.code = payload[0] if payload else -1
        said = payload[1:].decode("ascii", "replace")
        message, hint = REASONS.get(self.code, (f"the board reports error {self.code:#04x}", ""))
        shown = f"{message} (error {self.code:#04x}{', ' if said else ''}{said})" if self.code in REASONS else message
        super().__init__(shown if self.code in REASONS or not said else f"{message}: {said}", where=where, hint=hint)


class _Fields:
    """Reads the fields of an answer; an answer that ends early or late is an error."""

    def __init__(self, data: bytes, where: str) -> None:
        self._data = data
        self._at = 0
        self._where = where

    def take(self, size: int) -> bytes:
        if self._at + size > len(self._data):
            raise self._error(f"it ends at byte {len(self._data)}, inside a field")
        self._at += size
        return self._data[self._at - size : self._at]

    def u8(self) -> int:
        return self.take(1)[0]

    def u32(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def u64(self) -> int:
        return int.from_bytes(self.take(8), "little")

    def sizes(self, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}i", self.take(4 * count))

    def dtype(self) -> str:
        number = self.u8()
        if number not in DTYPES:
            raise self._error(f"element type {number} is unknown")
        return DTYPES[number]

    def tensor(self, name: str) -> BoardTensor:
        dtype, rank = self.dtype(), self.u8()
        shape, order = self.sizes(rank), tuple(self.take(rank))
        if sorted(order) != list(range(rank)):
            raise self._error(f"the dimension order {list(order)} does not fit {rank} dimensions")
        size = self.u32()
        check_bytes(dtype, shape, size, name, self._where)
        return BoardTensor(name, dtype, shape, size, order)

    def end(self) -> None:
        if self._at != len(self._data):
            raise self._error(f"it goes on for {len(self._data) - self._at} bytes behind its last field")

    def _error(self, message: str) -> BoardError:
        return BoardError(
            f"the board's answer cannot be read: {message}", where=self._where,
            hint="its firmware speaks another version of the protocol",
        )  # fmt: skip
