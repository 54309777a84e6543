from __future__ import annotations

import io
import time

import pytest

from openneutron.terminal import console
from openneutron.terminal.console import parse_count, progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def open_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Not a fixture: pytest puts its own stderr back between a fixture and its test."""
    made = Terminal()
    monkeypatch.setattr("sys.stderr", made)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(console, "PATIENCE_SECONDS", 0.05)
    return made


def test_what_is_quick_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    monkeypatch.setattr(console, "PATIENCE_SECONDS", 60.0)
    with progress("reading") as stage:
        stage("compiling")
    assert "compiling" not in terminal.getvalue()


def test_what_takes_longer_shows_its_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    with progress("reading") as stage:
        stage("float: 30 of 200")
        until = time.monotonic() + 300
        while "float: 30 of 200" not in terminal.getvalue() and time.monotonic() < until:
            time.sleep(0.02)
    assert "float: 30 of 200" in terminal.getvalue()


def test_nothing_is_said_into_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr("sys.stderr", pipe)
    monkeypatch.setattr(console, "PATIENCE_SECONDS", 0.0)
    with progress("reading") as stage:
        stage("compiling")
        time.sleep(0.05)
    assert pipe.getvalue() == ""


def test_a_failure_inside_ends_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    with pytest.raises(ValueError, match="no"), progress("reading"):
        time.sleep(0.2)
        raise ValueError("no")
    seen = len(terminal.getvalue())
    time.sleep(0.3)
    assert len(terminal.getvalue()) == seen


@pytest.mark.parametrize(
    ("text", "found"),
    [("float: 1,200 of 5,000", (1200, 5000)), ("layer 3 of 9: conv", (3, 9)), ("compiling", (0, None))],
)
def test_counts_are_read_from_the_stage(text: str, found: tuple[int, int | None]) -> None:
    assert parse_count(text) == found
