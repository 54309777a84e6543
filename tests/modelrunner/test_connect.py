from __future__ import annotations

import pytest

from openneutron.errors import BoardError, OptionError
from openneutron.modelrunner import connect as module
from openneutron.modelrunner.connect import connect, detect
from tests.modelrunner.fakes import ConsoleBoard, FramedBoard, Line, clock  # noqa: F401

pytestmark = pytest.mark.usefixtures("clock")


@pytest.mark.parametrize(("board", "protocol"), [(FramedBoard(), "executorch"), (ConsoleBoard(), "tflm")])
def test_the_board_is_asked_in_both_protocols(board: object, protocol: str) -> None:
    assert detect(Line(board), seconds=1.0) == protocol


def test_a_port_with_something_else_on_it_is_refused() -> None:
    class Other:
        def hear(self, data: bytes) -> bytes:
            return b"login: "

    with pytest.raises(BoardError, match="neither protocol: 7 bytes came"):
        detect(Line(Other()), seconds=0.1)


def test_a_failed_connection_gives_the_port_back(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        def hear(self, data: bytes) -> bytes:
            return b""

    line = Line(Other())
    monkeypatch.setattr(module, "open_transport", lambda port, baud: line)
    monkeypatch.setattr(module, "_DETECT_SECONDS", 0.1)
    monkeypatch.setattr(module, "detect", lambda transport: detect(transport, 0.1))
    with pytest.raises(BoardError):
        connect("port")
    assert line.closed


def test_the_right_client_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    assert connect("http://board").protocol == "tflm_modelrunner over HTTP"
    for board, protocol in ((FramedBoard(), "executorch_modelrunner"), (ConsoleBoard(), "tflm_modelrunner")):
        monkeypatch.setattr(module, "open_transport", lambda port, baud, board=board: Line(board))
        assert connect("port").protocol == protocol
    with pytest.raises(OptionError, match="no HTTP"):
        connect("http://board", protocol="executorch")
    with pytest.raises(OptionError, match="--protocol is 'morse'"):
        connect("port", protocol="morse")
