from __future__ import annotations

from collections.abc import Callable

import pytest

from openneutron.errors import BoardError, OptionError
from openneutron.modelrunner.tflm_uart import FLASH_BLOCK, ConsoleRunner
from tests.modelrunner.fakes import CLOCK, QUICK_CONSOLE, Clock, ConsoleBoard, Line, clock  # noqa: F401

pytestmark = pytest.mark.usefixtures("clock")

DATA = bytes(range(8))
PLUS_ONE = bytes(range(1, 9))


def runner(board: object, **noise: object) -> ConsoleRunner:
    return ConsoleRunner(Line(board, **noise), QUICK_CONSOLE)  # type: ignore[arg-type]


@pytest.mark.parametrize("generation", ["new", "old", "mixed"])
def test_a_model_is_loaded_run_and_timed_whatever_the_firmware_counts_in(generation: str) -> None:
    with runner(ConsoleBoard(generation=generation)) as board:
        assert board.info().empty
        board.load_model(b"a model")
        ran = board.run([DATA], times=5)
        assert (ran.outputs[0].data, ran.outputs[0].name, ran.microseconds) == (PLUS_ONE, "a/b c", 75.0)
        model = board.info()
        assert (model.arena_bytes, model.microseconds) == (4_096, 75.0)
        assert [(one.kind, one.unit, one.microseconds) for one in model.layers] == [
            ("NeutronGraph", "NPU", 50.0),
            ("SOFTMAX", "CPU", 25.0),
        ]
        assert (model.inputs[0].scale, model.inputs[0].zero_point) == (0.5, -3)


def test_names_are_used_where_the_firmware_has_no_indices() -> None:
    fake = ConsoleBoard(generation="old")
    with runner(fake) as board:
        board.load_model(b"a model")
        board.run([DATA])
    assert fake.commands[:2] == ["", "echo off"] and fake.commands[-2:] == [
        "tensor_loadb in",
        "run run=1 output=a%2Fb%20c",
    ]


def test_a_model_for_flash_goes_block_by_block() -> None:
    fake = ConsoleBoard(ram_bytes=1_000)
    said: list[str] = []
    with runner(fake) as board:
        board.load_model(bytes(range(256)) * 200, said.append)
    assert fake.model == bytes(range(256)) * 200
    assert said[:2] == [
        "uploading the model: 0 of 51,200 bytes",
        f"uploading the model: {FLASH_BLOCK:,} of 51,200 bytes",
    ]


class Once:
    def __init__(self, at: int, change: Callable[[bytes], bytes]) -> None:
        self.at, self.change = at, change

    def __call__(self, data: bytes) -> bytes:
        self.at -= 1
        return self.change(data) if self.at == 0 else data


def test_bytes_that_got_lost_in_an_upload_are_noticed_and_the_console_is_free_again() -> None:
    fake = ConsoleBoard()
    line = Line(fake)
    with ConsoleRunner(line, QUICK_CONSOLE) as board:
        line.to_board = Once(2, lambda data: data[:5] + data[8:])
        with pytest.raises(BoardError, match="bytes were lost on the line"):
            board.load_model(b"a longer model")
        line.to_board = bytes
        board.load_model(b"a model")
        assert board.run([DATA]).outputs[0].data == PLUS_ONE


class BufferedLine(Line):
    """A socket to a slow serial line: it takes everything at once, and the board hears it later."""

    def __init__(self, board: object) -> None:
        super().__init__(board)
        self.bytes_per_second, self.heard_at = 1e3, 0.0

    def write(self, data: bytes, seconds: float) -> None:
        self.heard_at = max(self.heard_at, CLOCK.now) + len(data) / self.bytes_per_second
        super().write(data, seconds)

    def read(self, most: int, seconds: float) -> bytes:
        if self.heard_at > CLOCK.now:
            CLOCK.sleep(min(seconds, self.heard_at - CLOCK.now))
            if self.heard_at > CLOCK.now:
                return b""
        return super().read(most, seconds)


def test_an_upload_that_a_socket_took_at_once_is_waited_for() -> None:
    fake = ConsoleBoard()
    with ConsoleRunner(BufferedLine(fake), QUICK_CONSOLE) as board:
        board.load_model(bytes(5_000))  # five seconds on the line, and the board itself answers within 0.2
    assert fake.model == bytes(5_000)


def test_an_upload_that_somebody_left_unfinished_is_ended_first() -> None:
    fake = ConsoleBoard()
    fake.upload = ("model", 2_000, False)
    with runner(fake) as board:
        board.load_model(b"a model")
    assert fake.model == b"a model"


@pytest.mark.parametrize(
    ("failure", "hint"),
    [
        ("Invoke failed", "board info"),
        ("tensor arena not allocated", "more tensor memory"),
        ("Didn't find op for builtin opcode 'FOO'", "does not have this operator"),
        ("Incompatible Neutron NPU microcode and driver versions!", "SDK release"),
        ("Failed to resize buffer. Requested: 9, available 4, missing: 5", "more tensor memory"),
    ],
)
def test_stale_results_behind_an_error_are_not_believed(failure: str, hint: str) -> None:
    fake = ConsoleBoard()
    with runner(fake) as board:
        board.load_model(b"a model")
        fake.failure = failure
        with pytest.raises(BoardError) as error:
            board.run([DATA])
    assert failure.split(".")[0] in str(error.value) and hint in str(error.value)


def test_an_error_while_preparing_the_model_is_reported() -> None:
    fake = ConsoleBoard()
    fake.failure = "model malloc failed"
    with runner(fake) as board, pytest.raises(BoardError, match="model malloc failed"):
        board.load_model(b"a model")


class Breaks(ConsoleBoard):
    """Behaves until a command, then says something of its own."""

    def __init__(self, word: str, text: bytes) -> None:
        super().__init__()
        self.word, self.text = word, text

    def command(self, line: str) -> bytes:
        return self.text if line.startswith(self.word) else super().command(line)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"\r\n TFLite Modelrunner \r\n\r\n=> ", "restarted before it answered"),
        (b"nothing more", "did not finish answering 'run' within"),
        (b"\r\n\r\nResults:{broken\r\n=> ", "no result of tflm_modelrunner"),
        (b"\r\n\r\nResults:[1]\r\n=> ", "no result of tflm_modelrunner"),
        (b'\r\n\r\nResults:{"error": "Output Tensor Not Found"}\r\n=> ', "Output Tensor Not Found"),
        (b'\r\n\r\nResults:{"outputs": [], "timing": 3}\r\n=> ', "returned 0 of 1 outputs"),
        (b'\r\n\r\nResults:{"outputs": [{"data": "?"}], "timing": 3}\r\n=> ', "no base64"),
        (b'\r\n\r\nResults:{"timing": NaN}\r\n=> ', "timing is nan"),
        (b'Results:{"outputs": [{"datatype":"INT8","shape":[9],"data":"AAAA"}]}\r\n=> ', "3 bytes, which is not"),
    ],
)  # fmt: skip
def test_a_run_that_goes_wrong_is_a_sentence(clock: Clock, text: bytes, message: str) -> None:  # noqa: F811
    with runner(Breaks("run", text)) as board:
        board.load_model(b"a model")
        began = clock.now
        with pytest.raises(BoardError) as error:
            board.run([DATA])
    assert message in str(error.value) and clock.now - began < 5


def test_a_model_of_which_bytes_are_missing_on_the_board_is_refused() -> None:
    class Short(ConsoleBoard):
        def result(self, line: str) -> str:
            return super().result(line).replace('"model_size": 7', '"model_size": 5')

    with runner(Short()) as board, pytest.raises(BoardError, match="has 5 bytes of the model's 7"):
        board.load_model(b"a model")


def test_inputs_of_another_size_and_a_missing_model_are_refused() -> None:
    with runner(ConsoleBoard()) as board:
        with pytest.raises(BoardError, match="no model is loaded"):
            board.run([DATA])
        board.load_model(b"a model")
        with pytest.raises(OptionError, match="input 'in' has 3 bytes"):
            board.run([b"abc"])
        with pytest.raises(OptionError, match="0 inputs given"):
            board.run([])


def test_no_prompt_is_an_error() -> None:
    class Silent:
        def hear(self, data: bytes) -> bytes:
            return b""

    with pytest.raises(BoardError, match="there is no console prompt"):
        runner(Silent())
