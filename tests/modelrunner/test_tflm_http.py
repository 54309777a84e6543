from __future__ import annotations

from collections.abc import Iterator

import pytest

from openneutron.errors import BoardError, OptionError
from openneutron.modelrunner.tflm_http import HttpRunner, Patience
from tests.modelrunner.fakes import HttpBoard

DATA = bytes(range(8))


@pytest.fixture
def board() -> Iterator[HttpBoard]:
    made = HttpBoard()
    yield made
    made.close()


def test_a_model_is_loaded_described_and_run(board: HttpBoard) -> None:
    with HttpRunner(board.url) as runner:
        assert runner.info().empty
        runner.load_model(b"a model with \r\n-- in it")
        assert board.console.model == b"a model with \r\n-- in it"
        ran = runner.run([DATA], times=2)
        assert (ran.outputs[0].data, ran.microseconds) == (bytes(range(1, 9)), 75.0)
        assert [one.unit for one in runner.info().layers] == ["NPU", "CPU"]


@pytest.mark.parametrize("failure", ['"error": "model inference failed"', '"error": "json results to large"'])
def test_errors_without_braces_are_errors(board: HttpBoard, failure: str) -> None:
    with HttpRunner(board.url) as runner:
        runner.load_model(b"a model")
        board.failure = failure
        with pytest.raises(BoardError, match=failure.split('"')[3]):
            runner.run([DATA])


def test_success_is_not_believed_without_a_model(board: HttpBoard) -> None:
    board.console.result = lambda line: '{"error": "Model Not Uploaded"}'  # type: ignore[method-assign]
    with HttpRunner(board.url) as runner, pytest.raises(BoardError, match="could not set the model up"):
        runner.load_model(b"a model")


def test_a_closed_connection_and_no_board_at_all_are_sentences(board: HttpBoard) -> None:
    with HttpRunner(board.url) as runner:
        runner.load_model(b"a model")
        board.silent = True
        with pytest.raises(BoardError, match="gave no answer"):
            runner.run([DATA])
    with pytest.raises(BoardError, match="gave no answer"):
        HttpRunner("http://127.0.0.1:1", Patience(0.2, 0.2, 0.2)).info()


@pytest.mark.parametrize("url", ["http://", "https://board", "http://board:port"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(OptionError, match="no address of a board"):
        HttpRunner(url)


def test_wrong_sizes_never_reach_the_board(board: HttpBoard) -> None:
    with HttpRunner(board.url) as runner:
        with pytest.raises(BoardError, match="no model is loaded"):
            runner.run([DATA])
        runner.load_model(b"a model")
        with pytest.raises(OptionError, match="has 3 bytes"):
            runner.run([b"abc"])
