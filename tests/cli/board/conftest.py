"""A board on every port: the command line talks to it as to a real one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.modelrunner.fakes import Line, plug_in

Plug = Callable[[object], Line]


@pytest.fixture
def plug(monkeypatch: pytest.MonkeyPatch) -> Plug:
    """Put a board on every port; returns the line to it."""

    def call(board: object) -> Line:
        return plug_in(monkeypatch, board)

    return call
