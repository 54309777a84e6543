from __future__ import annotations

import struct

import numpy as np
import pytest

from openneutron.errors import BoardError, OptionError
from openneutron.modelrunner.answers import BoardTensor
from openneutron.modelrunner.executorch_uart import FramedRunner
from openneutron.modelrunner.framing import Command, encode
from tests.modelrunner.fakes import QUICK, FramedBoard, Line, clock, noisy  # noqa: F401

pytestmark = pytest.mark.usefixtures("clock")

DATA = bytes(range(8))
PLUS_ONE = bytes(range(1, 9))


def runner(board: object, **noise: object) -> FramedRunner:
    return FramedRunner(Line(board, **noise), QUICK)  # type: ignore[arg-type]


def test_a_model_is_loaded_described_and_run() -> None:
    with runner(FramedBoard()) as board:
        assert board.info().empty
        said: list[str] = []
        board.load_model(b"model" + bytes(9_000), said.append)
        assert said[:2] == ["load model: 0 of 9,014 bytes", "load model: 4,096 of 9,014 bytes"]
        tensor = BoardTensor("input_0", "int8", (8,), 8, (0,))
        assert board.info().inputs == (tensor,)
        ran = board.run([DATA], times=3)
        assert (ran.outputs[0].data, ran.microseconds, ran.retries) == (PLUS_ONE, 848.0, 0)
        assert ran.outputs[0].array().tolist() == list(PLUS_ONE)


@pytest.mark.parametrize("seed", range(8))
def test_a_noisy_line_gives_the_right_bytes(seed: int) -> None:
    line = {"to_board": noisy(seed, 0.01), "to_host": noisy(seed + 100, 0.01)}
    with runner(FramedBoard(), **line) as board:
        board.load_model(b"model" + bytes(40))
        assert board.run([DATA]).outputs[0].data == PLUS_ONE


class Once:
    """Changes the first frame with this command, and nothing else."""

    def __init__(self, command: int, change: object) -> None:
        self.command, self.change, self.done = command, change, 0

    def __call__(self, data: bytes) -> bytes:
        if data[:3] == bytes([0x55, 0xAA, self.command]) and not self.done:
            self.done += 1
            return self.change(data)  # type: ignore[operator,no-any-return]
        return data


DAMAGE = {
    "a lost byte": lambda d: d[:20] + d[21:],
    "a doubled byte": lambda d: d[:20] + d[19:],
    "a flipped bit": lambda d: d[:20] + bytes([d[20] ^ 4]) + d[21:],
    "a lost sync byte": lambda d: d[1:],
    "a longer length": lambda d: d[:4] + bytes([d[4] ^ 0x80]) + d[5:],
    "a length beyond the buffer": lambda d: d[:6] + b"\xff" + d[7:],
    "nothing at all": lambda d: b"",
}


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_request_is_sent_again(change: object) -> None:
    once = Once(Command.LOAD_MODEL, change)
    with runner(FramedBoard(), to_board=once) as board:
        board.load_model(b"model" + bytes(100))
        assert once.done and board.run([DATA]).outputs[0].data == PLUS_ONE


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_a_result_that_comes_damaged_is_computed_again_from_the_same_input(change: object) -> None:
    once = Once(Command.RESULT, change)
    with runner(FramedBoard(), to_host=once) as board:
        board.load_model(b"model")
        ran = board.run([DATA])
        assert (ran.outputs[0].data, bool(ran.retries)) == (PLUS_ONE, True)


@pytest.mark.parametrize(
    ("model", "data", "message"),
    [
        (b"other", DATA, "does not take this file as a program (error 0x10, load_model)"),
        (b"model", b"123", "refused the input"),
        (None, DATA, "has no model, or no input (error 0x08, no model)"),
    ],
)
def test_refusals_are_sentences(model: bytes | None, data: bytes, message: str) -> None:
    with runner(FramedBoard()) as board, pytest.raises(BoardError) as error:
        if model is not None:
            board.load_model(model)
        board.run([data])
    assert message in str(error.value) and "fake: " in str(error.value) and error.value.hint


class Silent:
    def hear(self, data: bytes) -> bytes:
        return b""


class Restarts(FramedBoard):
    def answer(self, command: int, payload: bytes) -> bytes:
        return self.greeting if command == Command.RUN else super().answer(command, payload)


class Says(FramedBoard):
    """Answers everything with one frame."""

    def __init__(self, command: int, payload: bytes) -> None:
        super().__init__()
        self.said = encode(command, payload)

    def answer(self, command: int, payload: bytes) -> bytes:
        return self.said


def test_a_silent_board_is_an_error_and_no_wait() -> None:
    line = Line(Silent())
    with pytest.raises(BoardError, match="the board does not answer"):
        FramedRunner(line, QUICK).info()
    assert len(line.written) < 100_000  # a port that never answered is not filled with a megabyte


def test_a_board_that_restarts_is_noticed() -> None:
    with runner(Restarts()) as board:
        board.load_model(b"model")
        with pytest.raises(BoardError, match="restarted before it answered"):
            board.run([DATA])


def test_a_line_of_nothing_but_noise_ends() -> None:
    with runner(FramedBoard(), to_host=noisy(1, 0.9)) as board, pytest.raises(BoardError):
        board.info()


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"\x01", "it ends at byte 1"),
        (b"\x01\x63\x00", "element type 99 is unknown"),
        (b"\x01\x01\x01" + struct.pack("<iB", 8, 5), "dimension order"),
        (b"\x01\x01\x01" + struct.pack("<iBI", 8, 0, 9) + b"\x00", "is not int8 [8]"),
        (b"\x01\x01\x01" + struct.pack("<iBI", -8, 0, 8) + b"\x00", "is not int8 [-8]"),
        (b"\x00\x00\x00", "goes on for 1 bytes"),
    ],
)
def test_an_answer_that_makes_no_sense_is_refused(payload: bytes, message: str) -> None:
    with runner(Says(Command.INFO, payload)) as board, pytest.raises(BoardError) as error:
        board.info()
    assert message in str(error.value)


def test_what_the_protocol_cannot_do_is_refused_before_anything_is_sent() -> None:
    line = Line(FramedBoard())
    with FramedRunner(line, QUICK) as board:
        with pytest.raises(OptionError, match="2 inputs are given"):
            board.run([DATA, DATA])
        with pytest.raises(BoardError, match="do not fit the board's receive buffer"):
            board.load_model(bytes(1_048_577))
    assert line.written == b""


def test_outputs_that_lie_channels_last_are_turned() -> None:
    from openneutron.modelrunner.answers import BoardOutput

    values = np.arange(12, dtype=np.int8).reshape(1, 3, 2, 2)
    stored = values.transpose(0, 2, 3, 1).tobytes()
    assert (BoardOutput("y", "int8", (1, 3, 2, 2), stored).array((0, 2, 3, 1)) == values).all()
