"""Limits from the environment."""

from __future__ import annotations

import os

import pytest

from openneutron.errors import RuntimeFailure
from openneutron.isolate import settings


def test_default_setting_and_nonsense(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(settings.MEMORY, raising=False)
    assert settings.memory(7) == 7
    monkeypatch.setenv(settings.MEMORY, "0")
    assert settings.memory(7) == 0
    for text in ("1G", "-1", "٣"):
        monkeypatch.setenv(settings.MEMORY, text)
        with pytest.raises(RuntimeFailure, match="not a number of bytes"):
            settings.memory(7)


@pytest.mark.parametrize("before", [None, "9"])
def test_a_timeout_for_a_while(before: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(settings.TIMEOUT, raising=False)
    if before is not None:
        monkeypatch.setenv(settings.TIMEOUT, before)
    with settings.timeout_of(None):
        assert os.environ.get(settings.TIMEOUT) == before
    with pytest.raises(KeyError), settings.timeout_of(3):
        assert settings.timeout(60) == 3
        raise KeyError
    assert os.environ.get(settings.TIMEOUT) == before
