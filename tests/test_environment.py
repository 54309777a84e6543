"""Limits from the environment."""

from __future__ import annotations

import os

import pytest

from openneutron import environment
from openneutron.errors import RuntimeFailure


def test_default_setting_and_nonsense(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(environment.MEMORY, raising=False)
    assert environment.memory(7) == 7
    monkeypatch.setenv(environment.MEMORY, "0")
    assert environment.memory(7) == 0
    for text in ("1G", "-1", "٣"):
        monkeypatch.setenv(environment.MEMORY, text)
        with pytest.raises(RuntimeFailure, match="not a number of bytes"):
            environment.memory(7)


@pytest.mark.parametrize("before", [None, "9"])
def test_a_timeout_for_a_while(before: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(environment.TIMEOUT, raising=False)
    if before is not None:
        monkeypatch.setenv(environment.TIMEOUT, before)
    with environment.timeout_of(None):
        assert os.environ.get(environment.TIMEOUT) == before
    with pytest.raises(KeyError), environment.timeout_of(3):
        assert environment.timeout(60) == 3
        raise KeyError
    assert os.environ.get(environment.TIMEOUT) == before
