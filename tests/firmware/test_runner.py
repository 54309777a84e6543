"""Client, protocol and comparison against a board: the runners' images under QEMU, with noise, silence and resets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import openneutron
from openneutron.cli.inputs.payloads import payload_of_file
from openneutron.cli.main import run
from openneutron.errors import BoardError, OpenNeutronError
from openneutron.microcode.payload import parse_payload
from openneutron.modelrunner import executorch_uart, tflm_uart
from openneutron.modelrunner.executorch_uart import FramedRunner
from openneutron.modelrunner.tflm_uart import ConsoleRunner
from tests import tiny
from tests.compiler.networks import Network
from tests.firmware import image
from tests.firmware.board import Board, NoisyTransport
from tests.firmware.conftest import alone
from tests.firmware.models import Model
from tests.modelrunner.fakes import noisy

# A busy machine lets QEMU wait for seconds; only what got lost on the line is waited for in full.
PATIENCE = executorch_uart.Patience(silence=0.1, gap=1.0, quiet=1.0, answer=4.0, load=6.0, run=6.0, probe=2.5)
FROZEN = executorch_uart.Patience(silence=0.1, gap=0.1, quiet=0.1, answer=0.5, load=0.5, run=0.5, probe=0.2)
CONSOLE_PATIENCE = tflm_uart.Patience(1.0, 2.0, 0.0, 2.0, 5.0, 3.0, 3.0, 3.0, 0.1)
# Where every byte arrives, what is waited for comes, however long QEMU takes.
LONG = executorch_uart.Patience(silence=0.1, gap=30.0, quiet=30.0, answer=60.0, load=60.0, run=60.0, probe=30.0)
CONSOLE_LONG = tflm_uart.Patience(30.0, 60.0, 0.0, 60.0, 60.0, 60.0, 60.0, 60.0, 0.1)


@pytest.fixture(scope="module")
def images(tools: None, shared: Path) -> Path:
    with alone(shared, "build"):
        return image.build_runners(shared / "objects")


@pytest.fixture(scope="module")
def frames(images: Path) -> Iterator[Board]:
    board = Board(images / "frames.elf")
    yield board
    board.close()


@pytest.fixture(scope="module")
def console(images: Path) -> Iterator[Board]:
    board = Board(images / "console.elf")
    yield board
    board.close()


@pytest.fixture
def model(litert_model: Callable[..., Model]) -> Model:
    return litert_model("convnet", tiny.convnet())


@pytest.fixture
def payload(model: Model) -> bytes:
    return (model.folder / "payload.bin").read_bytes()


def answer(board: str, *words: object, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = run(["board", *map(str, words), "-p", board])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


@pytest.mark.parametrize("protocol", ["executorch", "tflm"])
def test_a_board_computes_the_exact_bytes(
    protocol: str, request: pytest.FixtureRequest, model: Model, capsys: pytest.CaptureFixture[str]
) -> None:
    board: Board = request.getfixturevalue("frames" if protocol == "executorch" else "console")
    words = (model.folder / "source.tflite", "--protocol", protocol)
    code, text = answer(board.url, "check", *words, "--samples", 2, capsys=capsys)
    assert code == 0 and "output_0: equals LiteRT's exact values on 10 values of 2 inputs" in text, text
    code, text = answer(board.url, "profile", *words, "--runs", 2, "--json", capsys=capsys)
    assert code == 0 and len(json.loads(text)["milliseconds"]) == 2
    code, text = answer(board.url, "info", "--json", capsys=capsys)
    assert code == 0 and json.loads(text)["model"]["outputs"][0]["shape"] == [1, 5]


@pytest.mark.parametrize("seed", range(3))
def test_noise_on_the_line_changes_no_result(frames: Board, model: Model, payload: bytes, seed: int) -> None:
    """One byte in five thousand is dropped, doubled or has a flipped bit, in both directions."""
    line = NoisyTransport(frames.url, noisy(seed, 0.0002), noisy(seed + 100, 0.0002))
    with FramedRunner(line, PATIENCE) as board:
        board.load_model(payload)
        ran = board.run([model.inputs[0].tobytes()])
        assert [one.data for one in ran.outputs] == model.on_host()[0]


@pytest.mark.parametrize(
    "change",
    [lambda d: d[:100] + d[101:], lambda d: d[:100] + d[99:], lambda d: d[:100] + bytes([d[100] ^ 1]) + d[101:]],
    ids=["dropped", "doubled", "flipped"],
)
def test_a_damaged_upload_to_the_console_is_noticed(
    console: Board, model: Model, payload: bytes, change: Callable[[bytes], bytes]
) -> None:
    line = NoisyTransport(console.url, lambda data: change(data) if len(data) > 200 else data)
    with ConsoleRunner(line, CONSOLE_PATIENCE) as board, pytest.raises(BoardError) as raised:
        board.load_model(payload)
    assert any(words in str(raised.value) for words in ("bytes were lost", "the board reports: Failed to load")), str(
        raised.value
    )
    with ConsoleRunner(NoisyTransport(console.url), CONSOLE_LONG) as board:
        board.load_model(payload)
        ran = board.run([model.inputs[0].tobytes()])
        assert [one.data for one in ran.outputs] == model.on_host()[0]


def test_a_model_that_is_too_large_is_refused(images: Path) -> None:
    net = Network(np.random.default_rng(0), (1, 400, 400, 4))
    program = openneutron.compile(net.finish(net.conv(net.input, 4)))
    _, large = payload_of_file(program.tflite, "large", None)
    board = Board(images / "frames.elf")
    try:
        with (
            FramedRunner(NoisyTransport(board.url), LONG) as runner,
            pytest.raises(OpenNeutronError, match="larger than the board's pool"),
        ):
            runner.load_model(large)
    finally:
        board.close()


def test_the_console_refuses_a_model_that_is_too_large(console: Board) -> None:
    with ConsoleRunner(NoisyTransport(console.url), CONSOLE_LONG) as board:
        with pytest.raises(BoardError, match="the model is larger than the board's memory for it"):
            board.load_model(bytes(400_000))
        assert not board._transport.read(1, 0.0)


def test_damaged_and_foreign_models_are_refused_with_the_drivers_reason(frames: Board, payload: bytes) -> None:
    at = payload.index(parse_payload(payload, where="payload").weights[:16])
    with FramedRunner(NoisyTransport(frames.url), LONG) as board:
        with pytest.raises(BoardError, match="load_model: CHECKSUM"):
            board.load_model(payload[:at] + bytes([payload[at] ^ 1]) + payload[at + 1 :])
        with pytest.raises(BoardError, match="does not take this file as a program"):
            board.load_model(b"TFL3" * 40)
        assert board.info().empty


def test_silence_and_resets_are_sentences(images: Path, model: Model, payload: bytes) -> None:
    board = Board(images / "frames.elf")
    try:
        line = NoisyTransport(board.url)
        with FramedRunner(line, PATIENCE) as runner:
            runner.load_model(payload)
            board.reset()
            with pytest.raises(BoardError, match=r"the board (restarted|has no model)"):
                runner.run([model.inputs[0].tobytes()])
            board.freeze()
            with pytest.raises(BoardError, match="does not answer"):
                FramedRunner(line, FROZEN).info()
    finally:
        board.close()
